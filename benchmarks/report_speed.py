"""How long reading and reporting a long run takes, and how large its page is.

    python benchmarks/report_speed.py [--steps 100000] [--ranks 4]

Writes a run of two hosts as training writes it (records alone, nothing is trained), and prints one JSON line.
"""

import argparse
import json
import math
import random
import tempfile
import time
from pathlib import Path

from dragoman.config import Recipe
from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.run.reader import read_run
from dragoman.run.records import (
    Attempt,
    DataSummary,
    EvalRecord,
    EvalSentence,
    Event,
    Exchange,
    Host,
    Manifest,
    SideSize,
    StepRecord,
    TimingRecord,
    to_line,
)
from dragoman.run.samples import CardSample, SystemSample
from dragoman.run.writer import append_lines, write_eval_sentences, write_manifest

STEP_SECONDS = 0.25
EVERY = 4_000
START = 1.79e9


def write_long_run(path: Path, num_steps: int, num_ranks: int) -> RunFolder:
    folder = create_run_folder(path)
    recipe = Recipe(name="base").model_dump()
    side = SideSize("en", 600_000_000, 4_600_000, 593_000_000, 4_520_000, 958_600_000, 130_000_000)
    data = DataSummary("data", "f00d", "en-de", 4_520_000, side, side, {"all": 4_520_000}, {"dev": 3_000}, {}, 32_768)
    hosts = tuple(Host(name, "cpu", 8, 2**36, (), num_ranks // 2, "eth0", 10**9) for name in "ab")
    manifest = Manifest(
        "long", START, recipe, "h", {"dragoman": "0"}, num_ranks, "cpu", "fp32", 60_900_000, data, hosts,
        (Attempt(1, START, "dragoman train", num_ranks),), Exchange({"method": "dense", "precision": "fp32"}, 2), price_per_hour=7.1,
    )  # fmt: skip
    write_manifest(folder, manifest)
    dice = random.Random(1)
    for rank in range(num_ranks):
        lines = [to_line(_timing(step, rank, num_ranks, dice)) for step in range(1, num_steps + 1)]
        append_lines(folder.timing_path(rank), lines)
    append_lines(folder.steps_path, [to_line(_step(step, dice)) for step in range(1, num_steps + 1)])
    evals = [_eval(step, dice) for step in range(EVERY, num_steps + 1, EVERY)]
    append_lines(folder.evals_path, [to_line(record) for record in evals])
    for record in evals:
        write_eval_sentences(folder, record.step, "dev", _sentences(dice))
    for host in "ab":
        seconds = range(round(num_steps * STEP_SECONDS))
        append_lines(folder.system_path(host), [to_line(_sample(host, second)) for second in seconds])
    ends = [Event(1, START, "started", 0), Event(1, START + num_steps * STEP_SECONDS, "finished", num_steps)]
    append_lines(folder.events_path, [to_line(event) for event in ends])
    return folder


def _step(step: int, dice: random.Random) -> StepRecord:
    loss = 2 + 6 * step**-0.3 + dice.gauss(0, 0.05)
    rate = 2 * 512**-0.5 * min(step**-0.5, step * 4_000**-1.5)
    moment = START + step * STEP_SECONDS
    return StepRecord(1, moment, step, loss, loss - 0.4, rate, 0.3 + dice.random(), 25_000, 25_600, 1_000, STEP_SECONDS)


def _timing(step: int, rank: int, num_ranks: int, dice: random.Random) -> TimingRecord:
    exchange = 0.1 + 0.01 * dice.random()
    moment = START + step * STEP_SECONDS
    parts = (0.001, 0.04, 0.08, exchange, 0.01, 0.0, 0.0, STEP_SECONDS - 0.131 - exchange)
    return TimingRecord(
        1, moment, step, rank, "ab"[rank * 2 // num_ranks], *parts, STEP_SECONDS, 365_000_000, 365_000_000,
        moment - exchange - 0.01,
    )  # fmt: skip


def _eval(step: int, dice: random.Random) -> EvalRecord:
    loss = 1.6 + 6 * step**-0.3 + dice.gauss(0, 0.005)
    return EvalRecord(
        1, START + step * STEP_SECONDS, step, "dev", loss, loss - 0.1, 28 - 40 * step**-0.3, 55.0, "s", "s", 500, 500,
        13_000, 2.0, 10.0,
    )  # fmt: skip


def _sentences(dice: random.Random) -> list[EvalSentence]:
    words = [
        "the",
        "old",
        "baker",
        "gave",
        "his",
        "neighbour",
        "a",
        "warm",
        "cake",
        "and",
        "did",
        "not",
        "want",
        "to",
        "sell",
        "it",
    ]
    return [
        EvalSentence(i, " ".join(words), " ".join(words), " ".join(dice.sample(words, 12)), dice.random() * 50, 26)
        for i in range(500)
    ]


def _sample(host: str, second: int) -> SystemSample:
    sent = round(110e6 + 5e6 * math.sin(second))
    card = CardSample("eth0", sent, sent, 80_000, 80_000, 0, 10**9)
    return SystemSample(1, START + second, host, 1.0, 0.9, 2**34, 2**36, 0, 0, 2**39, (card,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--keep", type=Path, help="write the run there and leave it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_long_run(options.keep or Path(scratch) / "run", options.steps, options.ranks)
        start = time.perf_counter()
        run = read_run(folder.path)
        read_seconds = time.perf_counter() - start
        from dragoman.report.page import write_page  # what a person waits for includes this import

        write_page(run, folder.report_path)
        seconds = time.perf_counter() - start
        size = folder.report_path.stat().st_size
    figures = {"steps": options.steps, "ranks": options.ranks, "read_seconds": round(read_seconds, 2)}
    print(json.dumps({**figures, "report_seconds": round(seconds, 2), "report_bytes": size}))


if __name__ == "__main__":
    main()
