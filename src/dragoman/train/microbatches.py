"""Settles how many microbatches a step of a run is cut into: once, before its model is built, for all its life."""

from collections.abc import Callable
from dataclasses import replace

import torch

from dragoman.config import Recipe
from dragoman.data.shards import open_shards
from dragoman.dist.world import World
from dragoman.plan.microbatches import check_room, choose_number, number_for_ranks, value_bytes_of
from dragoman.run.reader import read_manifest
from dragoman.train.build import find_obstacle, resolve_precision
from dragoman.train.job import Job
from dragoman.train.memory import free_gpu_bytes


def settle_microbatches(job: Job, world: World) -> Job:
    """The recipe's number; where it says auto, that of an earlier attempt, or what the poorest GPU has memory for."""
    vocab_size = open_shards(job.data).manifest.vocab.size
    return replace(
        job, num_microbatches=agree_on_number(job.recipe, vocab_size, world, lambda: _known(job, world.size))
    )


def agree_on_number(
    recipe: Recipe, vocab_size: int, world: World, find_known: Callable[[], int | None] = lambda: None
) -> int:
    """What rank 0 knows or chooses by everybody's memory: only its run folder has earlier attempts."""
    free_bytes = free_gpu_bytes(world)
    value_bytes = max(world.gather(_value_bytes(recipe, world.device)))
    number = 0
    with world.together():
        if world.is_first:
            number = find_known() or choose_number(recipe, vocab_size, world.size, free_bytes, value_bytes)
    return world.gather(number)[0]


def _value_bytes(recipe: Recipe, device: torch.device) -> int:
    precision = resolve_precision(recipe.train.precision, device)
    return value_bytes_of(precision, is_fused=find_obstacle(recipe, precision, device) is None)


def _known(job: Job, num_ranks: int) -> int | None:
    """The number that the run has, for as many ranks as it has now."""
    earlier = _earlier(job) if job.recipe.batch.num_microbatches == "auto" else None
    if earlier is None:
        return None
    number = number_for_ranks(earlier, num_ranks)
    check_room(job.recipe, number, num_ranks)
    return number


def _earlier(job: Job) -> int | None:
    """Of the run so far. Manifests that do not have it come from recipes that named it."""
    if not job.folder.manifest_path.exists():
        return None
    manifest = read_manifest(job.folder)
    named = manifest.recipe.get("batch", {}).get("num_microbatches")
    return manifest.num_microbatches or (named if isinstance(named, int) else None)
