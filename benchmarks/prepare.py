"""`dragoman prepare` against bare SentencePiece encoding of the same cleaned text, in one run on one machine.

    python benchmarks/prepare.py --corpora DIR [--rounds 3]

DIR holds train, dev and test, each as .en.xz and .de.xz.
Prepares once with learning, which is timed apart, then in every round: the whole command with the vocabulary given
(reading, unpacking, cleaning, deduplication, shuffle, encoding, shards, manifest), and bare encoding of the pairs it
left, one thread in each of two processes, loading not counted. Prints one JSON line; medians over the rounds.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import sentencepiece

from dragoman.data.shards import open_shards
from dragoman.data.vocab import Vocab

NUM_PROCESSES = 2
BATCH_LINES = 1_000


def prepare(corpora: Path, out: Path, *options: str) -> dict:
    """Run the command; its time, memory and manifest."""
    files = []
    for option, name in (("", "train"), ("dev-", "dev"), ("test-", "test")):
        for side, language in (("source", "en"), ("target", "de")):
            files += [f"--{option}{side}", str(corpora / f"{name}.{language}.xz")]
    command = [sys.executable, "-m", "dragoman.cli", "prepare", "small", "--languages", "en-de", *files]
    start = time.perf_counter()
    with subprocess.Popen([*command, "--out", str(out), "--json", *options], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        manifest = json.load(process.stdout)
        # The usage of the command and of all its processes; the memory is that of the largest, in kB on Linux.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
        "manifest": manifest,
    }


def write_clean_text(out: Path, folder: Path) -> list[Path]:
    """The training pairs as text, in one file for each process, both sides in each.

    Runs in a process of its own: a command started from a large process inherits its peak memory.
    """
    data = open_shards(out)
    vocab = Vocab.load(data.vocab_path)
    lines: list[str] = []
    for shard in data.shards:
        lines += vocab.decode([shard.source(index).tolist() for index in range(shard.num_pairs)])
        lines += vocab.decode([shard.target(index).tolist() for index in range(shard.num_pairs)])
    paths = [folder / f"clean-{number}.txt" for number in range(NUM_PROCESSES)]
    for number, path in enumerate(paths):
        path.write_text("\n".join(lines[number::NUM_PROCESSES]), encoding="utf-8")
    return paths


def encode_bare(arguments: tuple[Path, Path, float]) -> tuple[float, float, float, int]:
    """When encoding began and ended, its CPU seconds, and the number of ids."""
    text, model, start = arguments
    lines = text.read_text(encoding="utf-8").split("\n")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    time.sleep(max(0.0, start - time.time()))
    begin, cpu_begin, num_ids = time.time(), time.process_time(), 0
    for first in range(0, len(lines), BATCH_LINES):
        rows = processor.encode(lines[first : first + BATCH_LINES], out_type=int, num_threads=1)
        num_ids += sum(map(len, rows))
    return begin, time.time(), time.process_time() - cpu_begin, num_ids


def time_bare(texts: list[Path], model: Path) -> dict:
    with ProcessPoolExecutor(NUM_PROCESSES, mp_context=get_context("spawn")) as pool:
        start = time.time() + 3
        results = list(pool.map(encode_bare, [(text, model, start) for text in texts]))
    begins, ends, cpu_seconds, num_ids = zip(*results, strict=True)
    return {"seconds": max(ends) - min(begins), "cpu_seconds": sum(cpu_seconds), "num_ids": sum(num_ids)}


def median(rounds: list[dict], key: str) -> float:
    return statistics.median(entry[key] for entry in rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        learned = prepare(options.corpora, folder / "learned")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            texts = pool.submit(write_clean_text, folder / "learned", folder).result()
        model = folder / "learned" / "vocab.model"
        rounds, bare_rounds = [], []
        for number in range(options.rounds):
            rounds.append(prepare(options.corpora, folder / f"round-{number}", "--vocab", str(model)))
            bare_rounds.append(time_bare(texts, model))
    manifest = rounds[-1]["manifest"]
    seconds, bare = median(rounds, "seconds"), median(bare_rounds, "seconds")
    cpu_seconds, bare_cpu_seconds = median(rounds, "cpu_seconds"), median(bare_rounds, "cpu_seconds")
    num_ids = bare_rounds[0]["num_ids"] + 2 * manifest["num_train_pairs"]
    result = {
        "benchmark": "prepare",
        "pairs": manifest["num_train_pairs"],
        "same_fingerprint": manifest["fingerprint"] == learned["manifest"]["fingerprint"],
        "same_number_of_ids": num_ids == manifest["source_tokens"] + manifest["target_tokens"],
        "prepare_seconds": round(seconds, 2),
        "bare_encoding_seconds": round(bare, 2),
        "ratio": round(seconds / bare, 3),
        "cpu_ratio": round(cpu_seconds / bare_cpu_seconds, 3),
        "prepare_seconds_rounds": [round(entry["seconds"], 2) for entry in rounds],
        "bare_encoding_seconds_rounds": [round(entry["seconds"], 2) for entry in bare_rounds],
        "prepare_cpu_seconds": round(cpu_seconds, 2),
        "bare_encoding_cpu_seconds": round(bare_cpu_seconds, 2),
        "learn_vocab_seconds": learned["manifest"]["seconds"]["learn_vocab"],
        "stage_seconds": manifest["seconds"],
        "peak_process_mib": round(max(entry["peak_mib"] for entry in rounds), 1),
        "peak_process_mib_learning": round(learned["peak_mib"], 1),
        "load_average": os.getloadavg(),
        "cores": os.cpu_count(),
        "machine": platform.platform(),
        "versions": manifest["versions"],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
