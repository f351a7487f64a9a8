"""Settles how a step of a run is computed: in what precision, and within the memory there is in how many microbatches
and whether activations are recomputed. Before the model is built; the last two for all the run's life."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from dragoman.config import Recipe
from dragoman.data.shards import open_shards
from dragoman.dist.world import World
from dragoman.plan.microbatches import (
    check_room,
    choose_number,
    needs_recomputing,
    number_for_ranks,
    value_bytes_of,
)
from dragoman.run.reader import read_manifest
from dragoman.run.records import Manifest
from dragoman.train.build import agree_on_precision, find_obstacle
from dragoman.train.job import Job
from dragoman.train.memory import free_gpu_bytes

Settled = tuple[int, bool]  # number of microbatches, whether activations are recomputed


class Cut(NamedTuple):
    """How a rank computes a step."""

    num_microbatches: int
    recomputes: bool
    precision: str


def settle_microbatches(job: Job, world: World) -> Job:
    """As the recipe says; where it says auto, as in an earlier attempt, or by the memory of the poorest GPU."""
    vocab_size = open_shards(job.data).manifest.vocab.size
    return replace(job, **agree_on_cut(job.recipe, vocab_size, world, lambda: _earlier(job))._asdict())


def agree_on_cut(
    recipe: Recipe, vocab_size: int, world: World, find_earlier: Callable[[], Manifest | None] = lambda: None
) -> Cut:
    """What rank 0 knows or chooses by everybody's memory: only its run folder has earlier attempts."""
    free_bytes = free_gpu_bytes(world)
    precision = agree_on_precision(recipe, world)
    is_fused = find_obstacle(recipe, precision, world.device) is None
    value_bytes = max(world.gather(value_bytes_of(precision, is_fused)))
    settled: Settled = (0, False)
    with world.together():
        if world.is_first:
            settled = _settle(recipe, vocab_size, world.size, free_bytes, value_bytes, find_earlier())
    number, recomputes = world.gather(settled)[0]
    return Cut(number, recomputes, precision)


def _settle(
    recipe: Recipe, vocab_size: int, num_ranks: int, free_bytes: int | None, value_bytes: int, earlier: Manifest | None
) -> Settled:
    number = _known_number(recipe, num_ranks, earlier)
    if number is None:
        number = choose_number(recipe, vocab_size, num_ranks, free_bytes, value_bytes)
    if earlier is not None and recipe.train.recompute == "auto":
        return number, earlier.recomputes
    return number, needs_recomputing(recipe, vocab_size, number, free_bytes, value_bytes)


def _known_number(recipe: Recipe, num_ranks: int, earlier: Manifest | None) -> int | None:
    """The number that the run has, for as many ranks as it has now."""
    if earlier is None or recipe.batch.num_microbatches != "auto":
        return None
    # Manifests that do not have it come from recipes that named it.
    named = earlier.recipe.get("batch", {}).get("num_microbatches")
    known = earlier.num_microbatches or (named if isinstance(named, int) else None)
    if known is None:
        return None
    number = number_for_ranks(known, num_ranks)
    check_room(recipe, number, num_ranks)
    return number


def _earlier(job: Job) -> Manifest | None:
    return read_manifest(job.folder) if job.folder.manifest_path.exists() else None
