"""What a batch costs, and what that leaves to a server whose clients ask for one sentence at a time.

    python benchmarks/batch_cost.py --model EXPORT --source FILE [--seconds 90] [--clients 64]

Times batches of one thread, of many sizes and lengths, and fits a cost a step of the search (the longest translation of a
batch makes them) and a cost a piece. Then, by these costs alone, so many clients that each ask again once they are
answered, two workers, and several ways to choose a batch from those who wait, beside all sentences sorted by length.
Prints one JSON line.
"""

import argparse
import heapq
import itertools
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman.translate.translator import Translator
from dragoman.web.serve.bench import read_sentences
from dragoman.web.serve.bench_bare import BareHere

SIZES = (1, 2, 4, 8, 16, 24, 32)
BARE_SIZE = 32
NUM_WORKERS = 2
NUM_SIMULATED = 16_000

Waiting = list[tuple[int, int]]  # length of a sentence, and its number in the order of arrival
Choose = Callable[[Waiting], Waiting]


@dataclass(frozen=True)
class Cost:
    step_ms: float
    piece_ms: float

    def of(self, lengths: list[int]) -> float:
        return self.step_ms * max(lengths) + self.piece_ms * sum(lengths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--clients", type=int, default=64)
    options = parser.parse_args()
    bare = BareHere.of(Translator(options.model, threads=1))
    pieces = bare.pieces(read_sentences(options.source))
    cost, error, num_batches = fitted(*timed_batches(bare, pieces, options.seconds))
    lengths = [len(each) + 1 for each in pieces]
    ordered = sorted(lengths)
    alone = sum(cost.of(ordered[i : i + BARE_SIZE]) for i in range(0, len(ordered), BARE_SIZE)) / len(ordered)
    ways = {f"{size} alike": alike(size) for size in (16, 24, 28, 32)}
    ways |= {f"cheapest, passed over {most} times": cheapest(cost, most) for most in (2, 8)}
    found = {name: simulated(lengths, choose, cost, options.clients) for name, choose in ways.items()}
    shares = {name: {**each, "of_sorted": round(alone / each["ms"], 3)} for name, each in found.items()}
    fit = {"step_ms": round(cost.step_ms, 2), "piece_ms": round(cost.piece_ms, 2), "error": error}
    print(json.dumps({"benchmark": "batch_cost", "batches": num_batches, **fit, "clients": options.clients, **shares}))


def timed_batches(bare: BareHere, pieces: list[list[str]], seconds: float) -> tuple[list[tuple[int, int]], list[float]]:
    """Steps and pieces of each, and its processor time in milliseconds: half of like length, half mixed."""
    ordered = sorted(pieces, key=len)
    draw = random.Random(1)
    features: list[tuple[int, int]] = []
    times: list[float] = []
    bare.translate(ordered[:8])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        size = draw.choice(SIZES)
        first = draw.randrange(len(ordered) - size)
        batch = ordered[first : first + size] if draw.random() < 0.5 else draw.sample(ordered, size)
        start = time.process_time()
        bare.translate(batch)
        times.append(1000 * (time.process_time() - start))
        lengths = [len(each) + 1 for each in batch]
        features.append((max(lengths), sum(lengths)))
    return features, times


def fitted(features: list[tuple[int, int]], times: list[float]) -> tuple[Cost, float, int]:
    """By least squares of the relative error, which is given too."""
    x, y = np.array(features, float), np.array(times)
    (step_ms, piece_ms), *_ = np.linalg.lstsq(x / y[:, None], np.ones_like(y), rcond=None)
    cost = Cost(float(step_ms), float(piece_ms))
    error = np.sqrt(np.mean((x @ np.array([step_ms, piece_ms]) / y - 1) ** 2))
    return cost, round(float(error), 3), len(times)


def simulated(lengths: list[int], choose: Choose, cost: Cost, num_clients: int) -> dict[str, float]:
    """Milliseconds of a core a sentence, and how long an answer takes."""
    sentences = itertools.cycle(lengths)
    numbers = itertools.count()
    came: dict[int, float] = {}
    waiting: Waiting = []
    running: list[tuple[float, int, Waiting]] = []
    waits: list[float] = []
    now = work = 0.0

    def ask() -> None:
        number = next(numbers)
        came[number] = now
        waiting.append((next(sentences), number))

    for _ in range(num_clients):
        ask()
    while len(waits) < NUM_SIMULATED:
        while waiting and len(running) < NUM_WORKERS:
            batch = choose(waiting)
            for each in batch:
                waiting.remove(each)
            milliseconds = cost.of([length for length, _ in batch])
            work += milliseconds
            heapq.heappush(running, (now + milliseconds, next(numbers), batch))
        now, _, batch = heapq.heappop(running)
        for _, number in batch:
            waits.append(now - came.pop(number))
            ask()
    p50, p99 = (float(each) for each in np.percentile(waits, (50, 99)))
    return {"ms": round(now * NUM_WORKERS / len(waits), 2), "p50_ms": round(p50), "p99_ms": round(p99)}


def alike(size: int) -> Choose:
    """Whoever waits longest and those nearest in length, as the server does."""

    def choose(waiting: Waiting) -> Waiting:
        first = min(waiting, key=lambda each: each[1])
        return sorted(waiting, key=lambda each: (each is not first, abs(each[0] - first[0])))[:size]

    return choose


def cheapest(cost: Cost, most_passed: int) -> Choose:
    """Neighbours in length that cost least a piece, of any number, until somebody was passed over too often."""
    passed: dict[int, int] = {}

    def choose(waiting: Waiting) -> Waiting:
        ordered = sorted(waiting)
        first = min(waiting, key=lambda each: each[1])
        is_due = passed.get(first[1], 0) >= most_passed
        groups = [
            ordered[i : i + size]
            for size in {min(size, len(ordered)) for size in SIZES[4:]}
            for i in range(len(ordered) - size + 1)
        ]
        due = [group for group in groups if first in group] if is_due else groups
        best = min(due, key=lambda group: cost.of([n for n, _ in group]) / sum(n for n, _ in group))
        for _, number in waiting:
            passed[number] = passed.get(number, 0) + 1
        return best

    return choose


if __name__ == "__main__":
    main()
