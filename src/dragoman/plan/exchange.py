"""Which exchange a run should use: the least lossy one that the link carries while the hosts compute. No torch.

`docs/guide/several-machines.md` has the measured loss of every rung; only what stands in that table may be chosen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.config import SyncConfig
from dragoman.plan.payload import Precision
from dragoman.plan.shapes import Bucket
from dragoman.plan.step import flow_of
from dragoman.plan.traffic import Placement, dense_traffic, diloco_traffic, sync_of
from dragoman.run.promise import ComputeProfile, LinkProfile
from dragoman.units import format_bytes, format_seconds

MOST_WAITING = 0.03  # of a step's compute
# A short probe flatters a link: exchanges ran at 0.90 to 1.00 of what it had said.
USABLE_SHARE = 0.92


@dataclass(frozen=True)
class Option:
    """One rung of the ladder."""

    method: Literal["dense", "diloco"]
    precision: Precision
    every_steps: int = 1

    @property
    def name(self) -> str:
        return f"{self.method} {self.precision}" + (f" every {self.every_steps}" if self.method == "diloco" else "")


# Least lossy first. For the same bytes, fewer bits at more exchanges lose less than more bits at fewer.
EXACT = Option("dense", "fp32")
LADDER = (
    EXACT,
    Option("dense", "bf16"),
    *(Option("diloco", "sign", every) for every in (4, 16, 64)),
)


@dataclass(frozen=True)
class Facts:
    """What was measured before the first step."""

    num_parameters: int
    num_hosts: int
    num_ranks: int
    compute_seconds: float  # forward and backward of a step on the slowest rank
    overlap_seconds: float  # of it, the part during which gradients can already travel
    bytes_per_second: float
    latency_seconds: float


@dataclass(frozen=True)
class Choice:
    """An option with what it is expected to cost in every step."""

    option: Option
    sent_bytes: int  # out of each host
    transfer_seconds: float
    waiting_seconds: float


def facts_of(compute: ComputeProfile, link: LinkProfile, placement: Placement, num_microbatches: int) -> Facts:
    """From a profile, for the rank that has most of a step's microbatches."""
    pieces = -(-num_microbatches // placement.num_ranks)
    return Facts(
        num_parameters=compute.num_parameters,
        num_hosts=placement.num_hosts,
        num_ranks=placement.num_ranks,
        compute_seconds=pieces * (compute.forward_seconds + compute.backward_seconds),
        overlap_seconds=compute.backward_seconds,
        bytes_per_second=link.bytes_per_second,
        latency_seconds=link.latency_seconds,
    )


def settled_sync(wanted: SyncConfig, option: Option = EXACT) -> SyncConfig:
    """A recipe's section that said auto, with the option in its place."""
    changes: dict[str, object] = {"method": option.method, "precision": option.precision}
    if option.method == "diloco":
        changes |= {"every_steps": option.every_steps, "delay_steps": 1}
    return SyncConfig.model_validate({**wanted.model_dump(), **changes})


def choose(facts: Facts, ladder: Sequence[Option] = LADDER) -> Choice:
    """The first rung whose waiting is small, or the one that waits least."""
    choices = [predict(option, facts) for option in ladder]
    for choice in choices:
        if choice.waiting_seconds <= MOST_WAITING * facts.compute_seconds:
            return choice
    return min(choices, key=lambda choice: choice.waiting_seconds)


def predict(option: Option, facts: Facts) -> Choice:
    """Bytes and seconds of one step."""
    placement = Placement(facts.num_hosts, facts.num_ranks)
    if option.method == "dense":
        # Which parts of the gradient are ready when is not known here: all of it may use the overlap.
        traffic = dense_traffic((Bucket(facts.num_parameters, 0.0),), option.precision, placement)
    else:
        sync = sync_of("diloco", precision=option.precision, every_steps=option.every_steps)
        traffic = diloco_traffic(facts.num_parameters, sync, placement)
    link = LinkProfile(facts.bytes_per_second * USABLE_SHARE, facts.latency_seconds)
    flow = flow_of(traffic, link, facts.overlap_seconds, facts.compute_seconds)
    return Choice(option, traffic.sent_bytes, flow.transfer_seconds, flow.waiting_seconds)


def explain(choice: Choice, facts: Facts) -> list[str]:
    """Why this one, in sentences; and what else would help where waiting remains."""
    dense = predict(LADDER[0], facts)
    lines = [
        f"a step computes {format_seconds(facts.compute_seconds)}; the link carries "
        f"{format_bytes(facts.bytes_per_second)}/s each way; exact gradients are {format_bytes(dense.sent_bytes)} a "
        f"step and would take {format_seconds(dense.sent_bytes / facts.bytes_per_second)}",
        f"exchange: {choice.option.name}, {format_bytes(choice.sent_bytes)} a step out of each host in "
        f"{format_seconds(choice.transfer_seconds)}, expected waiting {_percent(choice.waiting_seconds, facts)}",
    ]
    if choice.waiting_seconds > MOST_WAITING * facts.compute_seconds:
        lines.append("even so the link is the limit: " + _advice(choice, facts))
    elif choice.option == LADDER[-1]:
        lines.append("so rare an exchange costs quality: " + _advice(predict(LADDER[-2], facts), facts))
    return lines


def _advice(choice: Choice, facts: Facts) -> str:
    """How many times the text of a step hides this exchange."""
    factor = max(2, math.ceil(choice.transfer_seconds / facts.compute_seconds))
    return (
        f"{factor} times batch.target_tokens makes {factor} times the text of every exchange (optim.learning_rate "
        f"times {factor**0.5:.2g}, as Adam wants; batch.num_microbatches auto, or {factor} times as many, accumulates "
        f"gradients, and no more memory is needed)"
    )


def _percent(waiting_seconds: float, facts: Facts) -> str:
    return f"{100 * waiting_seconds / max(facts.compute_seconds, 1e-9):.0f} % of the step"
