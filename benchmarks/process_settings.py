"""What the heap and the instructions that we choose are worth to a search: bare CTranslate2, in fresh processes, in turns.

    python benchmarks/process_settings.py --model EXPORT --source FILE [--sentences 128] [--rounds 3]

Where a process lies in memory changes its speed by some percent, so one process of each kind says little. Prints one JSON
line: processor time a sentence of every process, page faults a sentence, the most memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dragoman.allocator import keep_freed_memory
from dragoman.translate.instructions import use_widest_vectors
from dragoman.web.serve.bench import read_sentences
from dragoman.web.serve.bench_bare import BareHere

KINDS = {
    "as it comes": (),
    "keep_freed_memory": (keep_freed_memory,),
    "use_widest_vectors": (use_widest_vectors,),
    "both": (keep_freed_memory, use_widest_vectors),
}
BATCH_SENTENCES = 32
NUM_TIMED = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=KINDS, help="measure this here, and nothing else")
    options = parser.parse_args()
    if options.kind is not None:
        print(json.dumps(measured(options)))
        return
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for _ in range(options.rounds):
        for kind in KINDS:
            command = [sys.executable, *sys.argv, "--kind", kind]
            found[kind].append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    print(json.dumps({"benchmark": "process_settings", "sentences": options.sentences, **found}))


def measured(options: argparse.Namespace) -> dict[str, float]:
    for change in KINDS[options.kind]:
        change()
    bare = BareHere.load(options.model, "cpu", 2)
    batch = sorted(bare.pieces(read_sentences(options.source)[: options.sentences]), key=len, reverse=True)
    bare.translate(batch, BATCH_SENTENCES)
    faults, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
    for _ in range(NUM_TIMED):
        bare.translate(batch, BATCH_SENTENCES)
    num_sentences = NUM_TIMED * len(batch)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_ms_per_sentence": round(1000 * (time.process_time() - start) / num_sentences, 1),
        "page_faults_per_sentence": round((usage.ru_minflt - faults) / num_sentences, 1),
        "most_memory_mb": round(usage.ru_maxrss * 1024 / 1e6),
    }


if __name__ == "__main__":
    main()
