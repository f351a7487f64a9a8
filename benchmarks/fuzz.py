"""Damaged inputs for every reader of files: recipes, text, data folders, runs, checkpoints, vocabularies, sentences.

    python benchmarks/fuzz.py [--inputs 10000] [--readers recipe,run] [--first-seed 0]

Each reader runs in a process of its own. Prints one JSON line per reader: how many inputs were refused with one line, how
many accepted, and tracebacks, crashes, writes, hangs and allocations beyond bounds (`tracebacks`), which must be 0; the
first of them ends its reader and is shown with its seed. Exit code 1 where there was one.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "fuzz")]  # the readers are those of the tests
os.environ.setdefault("OMP_NUM_THREADS", "1")

from fuzz_readers import READERS  # noqa: E402
from fuzz_runs import BrokenPromiseError, Tally, fair_share, run_apart  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000, help="damaged inputs for each reader")
    parser.add_argument("--readers", default=",".join(READERS), help=f"some of {','.join(READERS)}")
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    num_broken = 0
    for name in options.readers.split(","):
        try:
            tally = run_apart(name, fair_share(name, options.inputs), options.first_seed)
        except BrokenPromiseError as error:
            print(error, file=sys.stderr)
            tally = Tally(name, tracebacks=1)
            num_broken += 1
        print(json.dumps(asdict(tally)), flush=True)
    return 1 if num_broken else 0


if __name__ == "__main__":
    sys.exit(main())
