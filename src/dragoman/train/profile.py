"""How long a step of a recipe computes on these ranks, measured before the first one. Changes neither weights nor luck.

All ranks call this together and measure at the same time, as in a step; the slowest counts.
"""

import copy
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Literal

import torch
from torch import nn

from dragoman.config import CutRecipe, Recipe, SyncConfig
from dragoman.data.batches import BatchPlan
from dragoman.dist.arithmetic import arithmetic_seconds
from dragoman.dist.clock import now
from dragoman.dist.dense import BUCKET_BYTES
from dragoman.dist.limits import MEASURE_SECONDS, measure_seconds
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel
from dragoman.plan.traffic import method_name
from dragoman.run.promise import ComputeProfile
from dragoman.train.build import Built
from dragoman.train.feed import feed
from dragoman.train.job import recipe_hash
from dragoman.train.memory import free_gpu_bytes
from dragoman.train.optim import Optimizer
from dragoman.train.passes import Passes

NUM_PASSES, MOST_PASSES = 6, 30  # the first one is not counted
# Where the usual time may be taken; less of it, and these shrink with it.
SHORT_SECONDS = 1.5  # short passes are repeated for as long: they scatter
PASSES_SECONDS = 6.0  # all of them, as far as smaller microbatches can see to it
PEAK_SECONDS = 0.2
FEW_TOKENS = 128  # a microbatch that is quick on any device, to learn how slow this one is
NUM_UPDATES = 3
PEAK_WIDTH = {"cpu": 1_024, "cuda": 8_192}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "fp64": torch.float64}

Say = Callable[[str], None]


def measure_compute(
    world: World,
    recipe: CutRecipe,
    built: Built,
    passes: Passes,
    optimizer: Optimizer,
    plan: BatchPlan,
    *,
    methods: Literal["all", "wanted", "none"] = "all",
    say: Say = lambda _: None,
) -> ComputeProfile:
    """Forward, backward, update and what exchanges compute: all, those that the recipe may use, or none.

    The model is in training mode, the optimizer fresh, and no exchange is attached to the gradients yet. Afterwards all
    are as they were, and the gradients zero.
    """
    places = world.gather([world.host_number, world.local_rank])
    num_hosts = 1 + max(host for host, _ in places)
    num_local_ranks = 1 + max(local for _, local in places)
    with _kept_luck(world.device):
        say("compute: forward and backward")
        forward, backward = _pass_seconds(world, recipe, passes, plan)
        local_sum_seconds = _local_sum_seconds(world, built.flat) if num_local_ranks > 1 else 0.0
        arithmetic: dict[str, float] = {}
        if methods != "none":
            wanted = _methods(recipe.sync, methods == "all")
            arithmetic = _method_seconds(world, wanted, num_hosts, _stand_in(built.flat), say)
        say("compute: optimizer")
        optimizer_seconds = _update_seconds(world, built.flat, optimizer)
        peak_flops = _peak_flops(world.device, built.precision)
    mine = [forward, backward, optimizer_seconds, local_sum_seconds, peak_flops, arithmetic]
    everybody = world.gather(mine)
    slowest = max(everybody, key=lambda values: values[0] + values[1])
    return ComputeProfile(
        recipe_hash=recipe_hash(recipe),
        device=_device_name(world.device),
        precision=built.precision,
        num_parameters=built.flat.weights.numel(),
        num_microbatches=recipe.batch.num_microbatches,
        forward_seconds=slowest[0],
        backward_seconds=slowest[1],
        optimizer_seconds=max(values[2] for values in everybody),
        num_local_ranks=num_local_ranks,
        local_sum_seconds=max(values[3] for values in everybody),
        peak_flops=min(values[4] for values in everybody),
        method_seconds={name: max(values[5][name] for values in everybody) for name in arithmetic},
        target_tokens=recipe.batch.target_tokens,
        vocab_size=built.model.embedding.num_embeddings,
        kernels=built.kernels,
        gpu_free_bytes=free_gpu_bytes(world),
        recomputes=built.model.recomputes,
    )


@contextmanager
def _kept_luck(device: torch.device) -> Generator[None]:
    """Whatever is drawn inside, the training that follows draws what it would have drawn."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield


def _pass_seconds(world: World, recipe: CutRecipe, passes: Passes, plan: BatchPlan) -> tuple[float, float]:
    """Of one microbatch: forward and backward. Where one takes seconds, a part of it is timed and scaled up."""
    tokens = recipe.batch.target_tokens // recipe.batch.num_microbatches
    most = 1 if world.device.type == "cuda" else max(1, tokens // FEW_TOKENS)
    first = _timed(world, recipe, passes, _pieces(plan, world, passes, most), 2)
    full_seconds = max(world.gather(most * sum(first[-1]) if first else 0.0))
    share = _fitting_share(full_seconds, most)
    num_passes = min(MOST_PASSES, max(NUM_PASSES, round(_granted(SHORT_SECONDS) * share / max(full_seconds, 1e-6))))
    timed = _timed(world, recipe, passes, _pieces(plan, world, passes, share), num_passes)
    forward, backward = _usual(world.gather(timed))
    return share * forward, share * backward


def _granted(seconds: float) -> float:
    return seconds * min(1.0, measure_seconds() / MEASURE_SECONDS)


def _usual(timed: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float]:
    """From every rank's passes: in each the slowest rank counts, and of those the mean without the extremes."""
    busy = [passes for passes in timed if passes]
    slowest = sorted((max(at_once, key=sum) for at_once in zip(*busy, strict=True)), key=sum) if busy else [(0.0, 0.0)]
    num_extreme = len(slowest) // 6
    usual = slowest[num_extreme : len(slowest) - num_extreme]
    return statistics.fmean(forward for forward, _ in usual), statistics.fmean(backward for _, backward in usual)


def _fitting_share(full_seconds: float, most: int) -> int:
    """How many times smaller than whole a microbatch must be for its passes to fit into the time."""
    return min(most, max(1, round(NUM_PASSES * full_seconds / _granted(PASSES_SECONDS))))


def _pieces(plan: BatchPlan, world: World, passes: Passes, share: int) -> list[Any]:
    """Of this rank's part of the first step, its microbatches so many times smaller."""
    smaller = copy.copy(plan)
    num_microbatches = plan.config.num_microbatches * share
    smaller.config = plan.config.model_copy(update={"num_microbatches": num_microbatches})
    with closing(feed(smaller, world, [1], passes.piece)) as inputs:
        return next(inputs).pieces[:NUM_PASSES]


def _timed(
    world: World, recipe: Recipe, passes: Passes, pieces: Sequence[Any], num_passes: int
) -> list[tuple[float, float]]:
    timed: list[tuple[float, float]] = []
    for number in range(num_passes):
        world.any(False)
        if pieces:
            timed.append(_forward_backward(world.device, recipe, passes, pieces[number % len(pieces)]))
    return timed[1:]


def _forward_backward(device: torch.device, recipe: Recipe, passes: Passes, piece: Any) -> tuple[float, float]:
    start = now(device)
    passes.forward(piece, recipe.train.seed, recipe.batch.target_tokens)
    middle = now(device)
    passes.backward()
    return middle - start, now(device) - middle


def _stand_in(flat: FlatModel) -> FlatModel:
    """The same shapes, weights and gradient; what is done to it is done to nobody."""
    result = FlatModel(nn.ParameterList(nn.Parameter(parameter.detach().clone()) for parameter in flat.parameters))
    result.gradient.copy_(flat.gradient)
    return result


def _update_seconds(world: World, flat: FlatModel, optimizer: Optimizer) -> float:
    """What a step does to the flat vectors: clip, update, and zero for the next one. With a rate of zero."""
    taken: list[float] = []
    for _ in range(NUM_UPDATES):
        flat.gradient.fill_(1e-3)
        world.any(False)
        start = now(world.device)
        optimizer.update(rate=0.0)
        taken.append(now(world.device) - start)
    optimizer.reset()
    return sorted(taken[1:])[0]


def _local_sum_seconds(world: World, flat: FlatModel) -> float:
    """The gradient summed between the ranks of one host, as the exact exchange does it."""
    inside = world.within_host()
    values = flat.gradient.clone()
    taken: list[float] = []
    for _ in range(2):
        world.any(False)
        start = now(world.device)
        for pending in [inside.start_sum(bucket) for bucket in values.split(BUCKET_BYTES // values.element_size())]:
            pending.wait()
        taken.append(now(world.device) - start)
    return min(taken)


def _peak_flops(device: torch.device, precision: str) -> float:
    """Per second, of a large matrix product in the precision of the run."""
    width = PEAK_WIDTH.get(device.type, PEAK_WIDTH["cpu"])
    values = torch.full((width, width), 0.5, dtype=TYPES.get(precision, torch.float32), device=device)
    best, deadline = float("inf"), time.perf_counter() + _granted(PEAK_SECONDS)
    while time.perf_counter() < deadline or best == float("inf"):
        start = now(device)
        values @ values
        best = min(best, now(device) - start)
    return 2 * width**3 / best


def _method_seconds(
    world: World, methods: Sequence[SyncConfig], num_hosts: int, flat: FlatModel, say: Say
) -> dict[str, float]:
    found = {"dense fp32": 0.0}
    for config in methods:
        name = method_name(config)
        if name not in found:
            say(f"compute: arithmetic of {name}")
            found[name] = arithmetic_seconds(config, world, num_hosts, flat)
    return found


def _methods(wanted: SyncConfig, is_all: bool) -> list[SyncConfig]:
    """What the recipe names; what `auto` may choose; or everything."""
    if wanted.method != "auto" and not is_all:
        return [wanted]
    free = SyncConfig.model_validate({**wanted.model_dump(), "method": "diloco", "precision": "auto", "delay_steps": 1})
    plain = free.model_copy(update={"every_steps": 4})
    choices = [
        plain.model_copy(update={"method": "dense", "precision": "bf16"}),
        *(plain.model_copy(update={"every_steps": every}) for every in (4, 16, 64)),
    ]
    if is_all:
        choices += [plain.model_copy(update={"method": "int8"}), plain.model_copy(update={"method": "powersgd"})]
    return [*choices, *([] if wanted.method == "auto" else [wanted])]


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
