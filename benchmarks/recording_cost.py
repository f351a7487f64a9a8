"""What recording costs a run: the same training with and without it, in turn, and the parts one by one.

    python benchmarks/recording_cost.py --data demo/data [--recipe phrasebook] [--steps 150] [--rounds 4]

Without: phases are not marked, nothing is sampled, written or looked at (losses are still read at every step). Prints
one JSON line: median step seconds of both, their ratio (pairs of neighbouring runs, median), and in microseconds what
the loop's own thread spends per step on marks and records, and what share of a core the threads behind it take.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dragoman.dist.world import World, open_world
from dragoman.recipe import load_recipe
from dragoman.run.folder import create_run_folder
from dragoman.train import loop
from dragoman.train.clocks import clock_of
from dragoman.train.job import Job, make_job
from dragoman.train.meter import Meter
from dragoman.train.recorder import Recorder


class NoMeter:
    def __init__(self, _clock: object) -> None:
        pass

    def begin(self, _phase: str) -> None:
        pass

    def end_step(self, set_time: bool = False) -> None:
        moments.append(time.perf_counter())

    def take(self, wait: bool = False) -> list[Any]:
        return []


class MarkedMeter(Meter):
    def end_step(self, set_time: bool = False) -> None:
        super().end_step(set_time)
        moments.append(time.perf_counter())


class NoRecorder:
    def __init__(self, *_: object) -> None:
        pass

    def __getattr__(self, _name: str) -> Any:
        return lambda *_, **__: None


moments: list[float] = []


@contextmanager
def recording(is_on: bool) -> Iterator[None]:
    before = loop.Meter, loop.Recorder
    loop.Meter, loop.Recorder = (MarkedMeter, Recorder) if is_on else (NoMeter, NoRecorder)  # type: ignore[misc]
    try:
        yield
    finally:
        loop.Meter, loop.Recorder = before


def step_seconds(job: Job, world: World, is_on: bool) -> float:
    moments.clear()
    with recording(is_on):
        loop.train(job, world)
    steps = [b - a for a, b in itertools.pairwise(moments)]
    return statistics.median(steps[len(steps) // 5 : -1])  # the first ones warm up, the last one evaluates


def loop_thread_seconds(job: Job, world: World, num_steps: int = 2_000) -> float:
    """Marks and records of a step, without the work between them."""
    from dragoman.data.batches import BatchPlan
    from dragoman.data.shards import open_shards

    plan = BatchPlan(open_shards(job.data).shards, job.recipe.batch, 1).step(1)
    recorder = Recorder(job, world, 1)
    meter = Meter(clock_of(world.device))
    names = (
        "data",
        *("forward", "backward") * job.recipe.batch.num_microbatches,
        "exchange",
        "optimizer",
        "exchange",
        "other",
    )
    start = time.perf_counter()
    for _ in range(num_steps):
        for name in names:
            meter.begin(name)
        meter.end_step()
        recorder.step(plan, 1e-3, 1.0, 0)
        for times in meter.take():
            recorder.timed(times)
        recorder.told(1.0, 1.0)
    seconds = (time.perf_counter() - start) / num_steps
    recorder._sampler.close()
    recorder._writer.close()
    return seconds


def background_share(job: Job, world: World, seconds: float = 15.0) -> float:
    """CPU seconds of the sampler and the writer per second, at rest otherwise."""
    recorder = Recorder(job, world, 1)
    before = time.process_time()
    time.sleep(seconds)
    used = time.process_time() - before
    recorder._sampler.close()
    recorder._writer.close()
    return used / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--recipe", default="phrasebook")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    lasting = [
        f"train.max_steps={options.steps}",
        f"evaluate.every_steps={10 * options.steps}",
        "evaluate.decode=false",
    ]
    recipe = load_recipe(
        options.recipe, [*lasting, "evaluate.train_pairs=0", "checkpoint.every_steps=100000", *options.set]
    )
    world = open_world()
    pairs: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as scratch:

        def job(name: str) -> Job:
            return make_job(recipe, options.data, Path(scratch) / name, 1, "benchmark")

        for number in range(options.rounds):
            order = (True, False) if number % 2 else (False, True)
            found = {is_on: step_seconds(job(f"{number}-{is_on}"), world, is_on) for is_on in order}
            pairs.append((found[True], found[False]))
            print(f"with {found[True]:.5f} s, without {found[False]:.5f} s", file=sys.stderr)
        parts = Job(recipe, options.data, create_run_folder(Path(scratch) / "parts").path, 1, "benchmark")
        own, behind = loop_thread_seconds(parts, world), background_share(parts, world)
    without = statistics.median(b for _, b in pairs)
    print(
        json.dumps(
            {
                "device": world.device.type,
                "recipe": options.recipe,
                "step_seconds_with": round(statistics.median(a for a, _ in pairs), 6),
                "step_seconds_without": round(without, 6),
                "ratio": round(statistics.median(a / b for a, b in pairs), 4),
                "ratios": [round(a / b, 4) for a, b in pairs],
                "loop_microseconds_per_step": round(own * 1e6, 1),
                "loop_share_of_step": round(own / without, 5),
                "background_share_of_a_core": round(behind, 5),
            }
        )
    )


if __name__ == "__main__":
    main()
