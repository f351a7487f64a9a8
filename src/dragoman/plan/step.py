"""How long a step takes: compute, the part of the exchange that nothing hides, and the optimizer. No torch.

A link is a rate with a latency or, where sums of several sizes were timed, that curve.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.plan.traffic import Message, Traffic
from dragoman.run.promise import LinkProfile, SumTime


@dataclass(frozen=True, slots=True)
class Flow:
    """A step's exchange on a link."""

    transfer_seconds: float  # from its first byte to its last answer
    waiting_seconds: float  # of it, what no computing hides


def flow_of(traffic: Traffic, link: LinkProfile, backward_seconds: float, compute_seconds: float) -> Flow:
    """What a step waits for: `backward_seconds` is its last backward pass, `compute_seconds` all that it computes."""
    if not traffic.messages:
        return Flow(0.0, 0.0)
    seconds = [message_seconds(message, link) for message in traffic.messages]
    # The first message pays the latency once; others follow it closely, unless they wait for its answer.
    latencies = traffic.num_waits * link.latency_seconds
    transfer = sum(seconds) + latencies
    if traffic.is_background:
        # One fragment sets out in every step: a long flight hides latency, never bandwidth.
        late = max(sum(seconds) - compute_seconds, transfer - traffic.delay_steps * compute_seconds, 0.0)
        return Flow(transfer, late)
    ready = [message.ready_share * backward_seconds for message in traffic.messages]
    # The step's losses are summed after the update, when nothing else travels.
    last = link.latency_seconds
    return Flow(transfer, exposed_seconds(ready, seconds, latencies - last, backward_seconds) + last)


def exposed_seconds(ready: Sequence[float], seconds: Sequence[float], latency: float, end: float) -> float:
    """Messages travel one after the other, each once it is ready; what is left of them after `end`."""
    clock = 0.0
    for begin, length in zip(ready, seconds, strict=True):
        clock = max(clock, begin) + length
    return max(0.0, clock + latency - end)


def message_seconds(message: Message, link: LinkProfile) -> float:
    """Without latency."""
    plain = message.sent_bytes / link.bytes_per_second
    if not message.summed_bytes or not link.sums:
        return plain
    return max(0.0, sum_seconds(link, message.summed_bytes, plain / message.summed_bytes) - link.latency_seconds)


def sum_seconds(link: LinkProfile, num_bytes: int, least_slope: float = 0.0) -> float:
    """Of a sum of so many bytes over all ranks, by the measured curve: straight lines between its points and beyond.

    Beyond it no byte takes less than `least_slope` seconds: small sums may have used a burst that a port lets through.
    """
    curve = sorted((point.num_bytes, point.seconds) for point in link.sums)
    points = [(0, min(link.latency_seconds, curve[0][1])), *curve]
    if num_bytes > points[-1][0]:
        return points[-1][1] + max(_slope(*points[-2:]), least_slope) * (num_bytes - points[-1][0])
    low, high = next(pair for pair in itertools.pairwise(points) if num_bytes <= pair[1][0])
    return low[1] + _slope(low, high) * (num_bytes - low[0])


def _slope(low: tuple[int, float], high: tuple[int, float]) -> float:
    return (high[1] - low[1]) / max(high[0] - low[0], 1)


def faster(link: LinkProfile, factor: float) -> LinkProfile:
    """The same link with so many times the bandwidth; its latency stays."""
    latency = link.latency_seconds
    sums = (
        SumTime(point.num_bytes, min(latency, point.seconds) + max(0.0, point.seconds - latency) / factor)
        for point in link.sums
    )
    return replace(link, bytes_per_second=link.bytes_per_second * factor, sums=tuple(sums))


def for_ranks(link: LinkProfile, measured_ranks: int, num_ranks: int) -> LinkProfile:
    """The curve of sums for another number of ranks: a ring of n passes 2(n-1)/n of the bytes on."""
    if measured_ranks == num_ranks or not link.sums:
        return link
    if min(measured_ranks, num_ranks) == 1:
        return replace(link, sums=())
    factor = ((num_ranks - 1) / num_ranks) / ((measured_ranks - 1) / measured_ranks)
    return replace(faster(link, 1 / factor), bytes_per_second=link.bytes_per_second)
