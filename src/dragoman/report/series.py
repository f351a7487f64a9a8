"""Long series made short enough to draw: buckets, bins, shares. Plain numbers; knows no chart."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dragoman.run.records import EvalSentence, StepRecord, TimingRecord

# One bucket per pixel and a half of a chart: more would cost bytes that nobody sees.
MAX_BUCKETS = 280
PARTS = ("forward", "backward", "optimizer", "exchange", "data", "validation", "checkpoint", "other")


@dataclass(frozen=True, slots=True)
class Bucket:
    """Neighbouring steps drawn as one point; `mean` is None where none of them has a finite value."""

    step: int  # the last one
    low: float | None
    mean: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Bin:
    """A bar of a histogram over [start, end)."""

    start: float
    end: float
    count: int


@dataclass(frozen=True, slots=True)
class LengthBin:
    """Loss per token of the sentences with `first` to `last` target tokens."""

    first: int
    last: int
    loss: float

    @property
    def label(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


@dataclass(frozen=True, slots=True)
class Share:
    """One part of the time, summed over all steps and averaged over ranks."""

    name: str
    seconds: float
    share: float


def bucket_steps(
    steps: Sequence[StepRecord], value: Callable[[StepRecord], float], max_buckets: int = MAX_BUCKETS
) -> list[Bucket]:
    """At most `max_buckets` points with the spread of what each stands for."""
    width = max(1, math.ceil(len(steps) / max_buckets))
    return [_bucket(steps[start : start + width], value) for start in range(0, len(steps), width)]


def _bucket(steps: Sequence[StepRecord], value: Callable[[StepRecord], float]) -> Bucket:
    values = [number for number in map(value, steps) if math.isfinite(number)]
    if not values:
        return Bucket(steps[-1].step, None, None, None)
    return Bucket(steps[-1].step, min(values), statistics.fmean(values), max(values))


def histogram(values: Iterable[float], num_bins: int = 36) -> tuple[list[Bin], int]:
    """Bins up to the 99th percentile (one slow step must not flatten the rest), and how many lie beyond."""
    ordered = sorted(value for value in values if math.isfinite(value))
    if not ordered:
        return [], 0
    low, high = ordered[0], ordered[math.ceil(len(ordered) * 0.99) - 1]
    width = (high - low) / num_bins or max(abs(low), 1e-9) / num_bins
    counts = [0] * (num_bins + 1)
    for value in ordered:
        counts[min(int((value - low) / width), num_bins)] += 1
    # The largest value inside falls onto the upper edge.
    at_edge = sum(1 for value in ordered if low + num_bins * width <= value <= high)
    counts[num_bins - 1] += at_edge
    bins = [Bin(low + index * width, low + (index + 1) * width, counts[index]) for index in range(num_bins)]
    return bins, counts[num_bins] - at_edge


def length_bins(sentences: Sequence[EvalSentence], num_bins: int = 8) -> list[LengthBin]:
    """Bins of about equally many sentences; sentences of one length stay together."""
    usable = [item for item in sentences if item.target_tokens > 0 and math.isfinite(item.nll_sum)]
    ordered = sorted(usable, key=lambda item: item.target_tokens)
    wanted = math.ceil(len(ordered) / num_bins)
    groups: list[list[EvalSentence]] = []
    for item in ordered:
        is_full = not groups or len(groups[-1]) >= wanted
        if is_full and (not groups or groups[-1][-1].target_tokens < item.target_tokens):
            groups.append([])
        groups[-1].append(item)
    return [_length_bin(group) for group in groups]


def _length_bin(group: Sequence[EvalSentence]) -> LengthBin:
    loss = sum(item.nll_sum for item in group) / sum(item.target_tokens for item in group)
    return LengthBin(group[0].target_tokens, group[-1].target_tokens, loss)


def time_shares(timings: Sequence[TimingRecord]) -> list[Share]:
    """Where the time went, all of it: parts that took none are left out."""
    num_ranks = len({record.rank for record in timings}) or 1
    seconds = {
        part: sum(_finite(getattr(record, f"{part}_seconds")) for record in timings) / num_ranks for part in PARTS
    }
    total = sum(seconds.values())
    return [Share(part, spent, spent / total) for part, spent in seconds.items() if spent > 0]


def _finite(value: float) -> float:
    return value if math.isfinite(value) and value > 0 else 0.0


def spread(items: Sequence[int], count: int) -> list[int]:
    """`count` items, the first and the last among them, evenly between."""
    if count >= len(items) or count < 1:
        return list(items[: max(count, 0)])
    if count == 1:
        return [items[-1]]
    positions = {round(index * (len(items) - 1) / (count - 1)) for index in range(count)}
    return [items[position] for position in sorted(positions)]
