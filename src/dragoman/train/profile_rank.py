"""One rank of `dragoman doctor`: `python -m dragoman.train.profile_rank TASK`. Measures link and compute.

The first rank says on its output what is being measured, each line after a mark, and writes the result to a file.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dragoman.config import Recipe
from dragoman.data.batches import BatchPlan
from dragoman.data.shards import open_shards
from dragoman.dist.probe import measure_link
from dragoman.dist.world import World
from dragoman.plan.microbatches import cut
from dragoman.run.folder import replaced_file
from dragoman.run.promise import ComputeProfile
from dragoman.train.build import build_model
from dragoman.train.memory import naming_batch
from dragoman.train.microbatches import agree_on_cut
from dragoman.train.optim import Optimizer
from dragoman.train.passes import make_passes
from dragoman.train.profile import measure_compute
from dragoman.train.profile_task import MARK, ProfileTask, read_task
from dragoman.train.rank import as_rank, leave
from dragoman.train.synthetic import SyntheticShard
from dragoman.train.worker import end_with_launcher


def main(argument: str) -> int:
    """Join the others and measure; the exit code."""
    task = read_task(argument)
    return as_rank(lambda world: _write(task, world, _measure(task, world)))


def _measure(task: ProfileTask, world: World) -> dict[str, Any]:
    def say(text: str) -> None:
        if world.is_first and not task.is_quiet:
            sys.stdout.write(f"{MARK}{text}\n")
            sys.stdout.flush()

    num_hosts = 1 + max(world.gather(world.host_number))
    link = measure_link(world, say=say) if num_hosts > 1 else None
    compute = _compute(task, Recipe.model_validate(task.recipe), world, say) if task.recipe is not None else None
    return {
        "link": None if link is None else asdict(link),
        "compute": None if compute is None else asdict(compute),
        "devices": world.gather([world.host, world.device.type]),
        "world_size": world.size,
    }


def _compute(task: ProfileTask, recipe: Recipe, world: World, say: Callable[[str], None]) -> ComputeProfile:
    say("compute: building the model")
    if task.data is None:
        shards, vocab_size = [SyntheticShard(recipe)], recipe.vocab.size
    else:
        data = open_shards(Path(task.data).expanduser())
        shards, vocab_size = data.shards, data.load_vocab().size
    settled = agree_on_cut(recipe, vocab_size, world)
    own = cut(recipe, settled.num_microbatches)
    plan = BatchPlan(shards, own.batch, recipe.train.seed)
    with naming_batch(own.batch, world):
        built = build_model(recipe, vocab_size, world.device, None, settled.recomputes, settled.precision)
        optimizer = Optimizer(built.flat, recipe.optim, built.rounded, built.scale)
        return measure_compute(world, own, built, make_passes(built, recipe, plan), optimizer, plan, say=say)


def _write(task: ProfileTask, world: World, measured: dict[str, Any]) -> int:
    if world.is_first:
        with replaced_file(Path(task.out).expanduser()) as fresh:
            fresh.write_text(json.dumps(measured) + "\n", encoding="utf-8")
    world.any(False)
    return 0


if __name__ == "__main__":
    end_with_launcher()
    leave(main(sys.argv[1]))
