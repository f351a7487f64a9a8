"""CTranslate2 with all threads on one batch (1xN), or a batch a thread (Nx1): batches of sentences, and one alone.

    python benchmarks/ctranslate2_threads.py --export DIR --source FILE [--threads 2] [--sentences 256] [--size 32]

`sorted` by length over all sentences, `arriving` in the order of the file, as requests come to a server.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import ctranslate2

from dragoman.data.vocab import Vocab

BEAM = 4
NUM_SINGLES = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--export", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    for name, value in (("threads", 2), ("sentences", 256), ("size", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    vocab = Vocab.load(options.export / "vocab.model")
    lines = options.source.read_text(encoding="utf-8").splitlines()[: options.sentences]
    pieces = [[vocab.pieces[i] for i in vocab.encode_source(line)[0]] for line in lines]
    short = min(pieces, key=lambda each: abs(len(each) - 14))
    orders = {"sorted": sorted(pieces, key=len, reverse=True), "arriving": pieces}
    for inter, intra in ((1, options.threads), (options.threads, 1)):
        translator = ctranslate2.Translator(str(options.export), inter_threads=inter, intra_threads=intra)
        translator.translate_batch(pieces[:8], beam_size=BEAM)
        for name, order in orders.items():
            batches = [order[first : first + options.size] for first in range(0, len(order), options.size)]
            spent = seconds(partial(translate_all, translator, batches, inter))
            print(f"{name} {options.size}, {inter}x{intra}: {len(pieces) / spent:.2f} sentences/s", flush=True)
        alone = partial(translator.translate_batch, [short], beam_size=BEAM)
        times = [seconds(alone) for _ in range(NUM_SINGLES)]
        print(f"one of {len(short)} pieces, {inter}x{intra}: {1000 * statistics.median(times):.1f} ms", flush=True)


def translate_all(translator: ctranslate2.Translator, batches: list[list[list[str]]], num_callers: int) -> None:
    with ThreadPoolExecutor(num_callers) as pool:
        list(pool.map(lambda batch: translator.translate_batch(batch, beam_size=BEAM), batches))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
