"""Where the time of a setting's step goes: compute and link put together."""

from dataclasses import dataclass, replace

from dragoman.plan.compute import method_seconds
from dragoman.plan.setting import ACCURACY, LINK_RANGE, Setting, with_sync
from dragoman.plan.step import exposed_seconds, faster, flow_of
from dragoman.plan.traffic import Traffic, sync_of, traffic_of
from dragoman.run.promise import ComputeProfile, StepSplit

EXACT = sync_of("dense", precision="fp32")


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step, its bounds and its bytes."""

    split: StepSplit
    low_seconds: float
    high_seconds: float
    traffic: Traffic


def plan_step(setting: Setting) -> StepPlan:
    """Of a setting whose exchange is settled."""
    traffic = traffic_of(setting.recipe.sync, setting.parameters, setting.placement)
    split = _split(setting, setting.compute.middle, traffic)
    if setting.is_measured:
        low, high = ((1 + sign * ACCURACY) * split.total_seconds for sign in (-1, 1))
    else:
        slow, fast = (_with_link(setting, factor) for factor in LINK_RANGE)
        low = _split(fast, setting.compute.fastest, traffic).total_seconds
        high = _split(slow, setting.compute.slowest, traffic).total_seconds
    return StepPlan(split, low, high, traffic)


def train_seconds(setting: Setting, step: StepPlan) -> float:
    """Of all steps; the first ones of powersgd travel whole."""
    sync = setting.recipe.sync
    num_whole = min(sync.dense_steps, setting.num_steps) if sync.method == "powersgd" else 0
    seconds = (setting.num_steps - num_whole) * step.split.total_seconds
    if num_whole and setting.placement.num_hosts > 1:
        dense = with_sync(setting, EXACT)
        return seconds + num_whole * plan_step(dense).split.total_seconds
    return seconds + num_whole * step.split.total_seconds


def on_one_host(setting: Setting) -> Setting:
    """The same text on one of the hosts alone, summed exactly."""
    local = setting.placement.ranks_per_host
    alone = replace(setting, placement=replace(setting.placement, num_hosts=1, num_ranks=local))
    return with_sync(alone, EXACT)


def _split(setting: Setting, compute: ComputeProfile, traffic: Traffic) -> StepSplit:
    pieces = setting.pieces_per_rank
    arithmetic = method_seconds(compute, setting.recipe.sync) if setting.placement.num_ranks > 1 else 0.0
    computing = pieces * (compute.forward_seconds + compute.backward_seconds)
    waiting = _local_seconds(setting, compute, traffic)
    if setting.placement.num_hosts > 1:
        assert setting.link is not None, "several hosts have a link"
        busy = computing + arithmetic + compute.optimizer_seconds + waiting
        waiting += flow_of(traffic, setting.link, compute.backward_seconds, busy).waiting_seconds
    return StepSplit(computing + arithmetic, waiting, compute.optimizer_seconds)


def _local_seconds(setting: Setting, compute: ComputeProfile, traffic: Traffic) -> float:
    """Between the ranks of one host, where that is a round of its own: on one host, and inside a replica."""
    sync, placement = setting.recipe.sync, setting.placement
    if placement.ranks_per_host == 1:
        return 0.0
    if sync.method == "diloco":
        return compute.local_sum_seconds if sync.replica == "host" else 0.0
    if placement.num_hosts > 1:
        return 0.0  # one ring over all ranks: the slow link decides
    sizes = [message.summed_bytes or compute.num_parameters // 2 for message in traffic.messages]
    seconds = [size / (4 * compute.num_parameters) * compute.local_sum_seconds for size in sizes]
    ready = [message.ready_share * compute.backward_seconds for message in traffic.messages]
    return exposed_seconds(ready, seconds, 0.0, compute.backward_seconds)


def _with_link(setting: Setting, factor: float) -> Setting:
    return setting if setting.link is None else replace(setting, link=faster(setting.link, factor))
