"""Long series made short enough to draw: buckets, bins, shares. Plain numbers; knows no chart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.diagnose.series import TimingGrid
from dragoman.diagnose.split import Split
from dragoman.run.records import EvalSentence

Floats = NDArray[np.float64]

# One bucket per pixel and a half of a chart: more would cost bytes that nobody sees.
MAX_BUCKETS = 280
# In the order of the bar. The exchange is the two in the middle: waiting for the slowest rank, and transfer.
PARTS = ("forward", "backward", "optimizer", "waiting", "transfer", "data", "validation", "checkpoint", "other")


@dataclass(frozen=True, slots=True)
class Bucket:
    """Neighbours drawn as one point; `mean` is None where none of them has a finite value."""

    x: float  # of the last one
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


def buckets_of(x: Floats, values: Floats, max_buckets: int = MAX_BUCKETS) -> list[Bucket]:
    """At most `max_buckets` points with the spread of what each stands for."""
    if not len(values):
        return []
    width = max(1, math.ceil(len(values) / max_buckets))
    starts = np.arange(0, len(values), width)
    known = np.where(np.isfinite(values), values, np.nan)
    counts = np.add.reduceat(np.isfinite(known).astype(np.int64), starts)
    sums = np.add.reduceat(np.nan_to_num(known), starts)
    lows, highs = np.fmin.reduceat(known, starts), np.fmax.reduceat(known, starts)
    ends = np.minimum(starts + width, len(values)) - 1
    return [
        Bucket(float(x[end]), float(low), float(total / count), float(high))
        if count
        else Bucket(float(x[end]), None, None, None)
        for end, count, total, low, high in zip(ends, counts, sums, lows, highs, strict=True)
    ]


def histogram(values: Floats, num_bins: int = 36) -> tuple[list[Bin], int]:
    """Bins up to the 99th percentile (one slow step must not flatten the rest), and how many lie beyond."""
    ordered = np.sort(values[np.isfinite(values)])
    if not len(ordered):
        return [], 0
    low, high = float(ordered[0]), float(ordered[math.ceil(len(ordered) * 0.99) - 1])
    if high <= low:
        margin = max(0.1 * abs(low), 1e-9)
        low, high = low - margin, high + margin
    edges = np.linspace(low, high, num_bins + 1)
    counts, _ = np.histogram(ordered, edges)
    bins = [Bin(float(edges[i]), float(edges[i + 1]), int(counts[i])) for i in range(num_bins)]
    return bins, len(ordered) - int(counts.sum())


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


def time_shares(grid: TimingGrid | None, split: Split | None) -> list[Share]:
    """Where the time went, all of it: parts that took none are left out."""
    if grid is None:
        return []
    seconds = {part: _rank_seconds(values) for part, values in grid.parts.items()}
    exchange = seconds.pop("exchange", 0.0)
    transfer = min(exchange, float(np.nansum(split.transfer))) if split is not None else exchange
    seconds |= {"transfer": transfer, "waiting": exchange - transfer}
    total = sum(seconds.values())
    return [Share(part, seconds[part], seconds[part] / total) for part in PARTS if seconds.get(part, 0.0) > 0]


def _rank_seconds(values: Floats) -> float:
    """Of a whole run, as a mean rank spent them; a line that is missing counts as the mean of the others."""
    known = np.isfinite(values).sum(1)
    return float((np.nansum(values, axis=1) / np.maximum(known, 1)).sum())


def spread(items: Sequence[int], count: int) -> list[int]:
    """`count` items, the first and the last among them, evenly between."""
    if count >= len(items) or count < 1:
        return list(items[: max(count, 0)])
    if count == 1:
        return [items[-1]]
    positions = {round(index * (len(items) - 1) / (count - 1)) for index in range(count)}
    return [items[position] for position in sorted(positions)]
