"""Settles how a run's ranks stay together, before its first step; `auto` measures compute and link for that."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict

from dragoman.config import Recipe, SyncConfig
from dragoman.data.batches import BatchPlan
from dragoman.dist.clock import now
from dragoman.dist.probe import measure_link
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel
from dragoman.model.transformer import Transformer
from dragoman.plan.exchange import Choice, Facts, choose, explain
from dragoman.run.reader import read_manifest
from dragoman.run.records import Exchange
from dragoman.train.feed import Microbatch, feed
from dragoman.train.job import Job
from dragoman.train.objective import summed_losses

NUM_TIMED = 3


def settle_exchange(
    job: Job, world: World, flat: FlatModel, compute_seconds: Callable[[], tuple[float, float]]
) -> Exchange:
    """The recipe's method; where it says auto, what an earlier attempt on as many hosts found, or a fresh choice."""
    num_hosts = 1 + max(world.gather(world.host_number))
    if job.recipe.sync.method != "auto":
        return Exchange(
            job.recipe.sync.model_dump(), num_hosts, [f"exchange: {job.recipe.sync.method}, as the recipe says"]
        )
    if num_hosts == 1:
        return Exchange(_settings(job.recipe.sync, "dense", "fp32"), 1, ["one machine: the exact sum costs little"])
    known = world.gather(_earlier(job))[0]
    if known is not None and known["num_hosts"] == num_hosts:
        return Exchange(**known)
    seconds, overlap = (max(values) for values in zip(*world.gather(compute_seconds()), strict=True))
    link = measure_link(world)
    facts = Facts(
        num_parameters=flat.weights.numel(),
        num_hosts=num_hosts,
        num_ranks=world.size,
        compute_seconds=seconds,
        overlap_seconds=overlap,
        bytes_per_second=link.bytes_per_second,
        latency_seconds=link.latency_seconds,
    )
    choice = choose(facts)
    option = choice.option
    settings = _settings(job.recipe.sync, option.method, option.precision, option.every_steps)
    return Exchange(settings, num_hosts, explain(choice, facts), {**asdict(facts), **_cost(choice)})


def _earlier(job: Job) -> dict[str, object] | None:
    manifest = read_manifest(job.folder) if job.folder.manifest_path.exists() else None
    return None if manifest is None or manifest.exchange is None else asdict(manifest.exchange)


def _settings(wanted: SyncConfig, method: str, precision: str, every_steps: int = 1) -> dict[str, object]:
    changes = {"method": method, "precision": precision}
    if method == "diloco":
        changes |= {"every_steps": every_steps, "delay_steps": 1}
    return SyncConfig.model_validate({**wanted.model_dump(), **changes}).model_dump()


def _cost(choice: Choice) -> dict[str, float]:
    return {
        "sent_bytes": choice.sent_bytes,
        "transfer_seconds": choice.transfer_seconds,
        "waiting_seconds": choice.waiting_seconds,
    }


def compute_seconds(
    model: Transformer,
    recipe: Recipe,
    plan: BatchPlan,
    world: World,
    autocast: Callable[[], AbstractContextManager[object]],
) -> tuple[float, float]:
    """Seconds of this rank's share of a step, and of it the part in which finished gradients could travel."""
    pieces = next(feed(plan, world, [1])).microbatches
    if not pieces:
        return 0.0, 0.0
    longest = max(pieces, key=lambda piece: len(piece.labels))
    timed = sorted(_forward_backward(model, recipe, longest, autocast) for _ in range(NUM_TIMED))
    forward, backward = timed[0]  # the first pass pays for allocations and kernels
    model.zero_grad(set_to_none=False)
    return len(pieces) * (forward + backward), backward


def _forward_backward(
    model: Transformer, recipe: Recipe, piece: Microbatch, autocast: Callable[[], AbstractContextManager[object]]
) -> tuple[float, float]:
    start = now(piece.labels.device)
    with autocast():
        sums = summed_losses(model, piece, recipe.train.label_smoothing)
    middle = now(piece.labels.device)
    sums.loss.backward()
    return middle - start, now(piece.labels.device) - middle
