"""A run's records as arrays: one pass over the lines, so that a hundred thousand steps take a second. No verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dragoman.diagnose.statistics import Floats
from dragoman.run.records import Event, StepRecord, TimingRecord

Integers = NDArray[np.int64]

PARTS = ("data", "forward", "backward", "exchange", "optimizer", "validation", "checkpoint", "other")
_STEP_FIELDS = (
    "step", "attempt", "time", "loss", "nll", "learning_rate", "gradient_norm",
    "source_tokens", "target_tokens", "num_sentences", "step_seconds",
)  # fmt: skip
_TIMING_FIELDS = (
    "step", "rank", "attempt", "time", *(f"{part}_seconds" for part in PARTS),
    "wall_seconds", "sent_bytes", "card_sent_bytes", "exchange_start",
)  # fmt: skip
MAX_OFFSET_SECONDS = 1e12  # between two clocks: more is damage


@dataclass(frozen=True)
class StepSeries:
    """`steps.jsonl`, a column each. Seconds that cannot be are NaN."""

    step: Integers
    attempt: Integers
    time: Floats
    loss: Floats
    nll: Floats
    learning_rate: Floats
    gradient_norm: Floats
    source_tokens: Floats
    target_tokens: Floats
    num_sentences: Floats
    seconds: Floats

    def __len__(self) -> int:
        return len(self.step)

    @property
    def is_steady(self) -> NDArray[np.bool_]:
        """Not one of the first steps of an attempt, which pay for allocations, kernels and connections."""
        return _is_steady(self.attempt)


@dataclass(frozen=True)
class TimingGrid:
    """The timing lines as tables of steps x ranks; NaN where a rank left no line."""

    step: Integers
    attempt: Integers
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]  # of each rank, the latest
    parts: dict[str, Floats]
    wall: Floats
    sent_bytes: Floats
    card_sent_bytes: Floats
    time: Floats  # unix seconds by the first host's clock
    start: Floats  # of the exchange, by the first host's clock

    @property
    def num_hosts(self) -> int:
        return len(set(self.hosts))

    @property
    def is_steady(self) -> NDArray[np.bool_]:
        return _is_steady(self.attempt)

    @property
    def step_seconds(self) -> Floats:
        """Without validation and checkpoint."""
        rest = np.nan_to_num(self.parts["validation"]) + np.nan_to_num(self.parts["checkpoint"])
        return np.maximum(self.wall - rest, 0.0)


def step_series(steps: Sequence[StepRecord]) -> StepSeries:
    table = _table(steps, _STEP_FIELDS)
    seconds = np.where(np.isfinite(table[:, 10]) & (table[:, 10] >= 0), table[:, 10], np.nan)
    step, attempt = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    columns: list[Floats] = [table[:, column] for column in range(2, 10)]
    time, loss, nll, learning_rate, gradient_norm, source_tokens, target_tokens, num_sentences = columns
    return StepSeries(
        step, attempt, time, loss, nll, learning_rate, gradient_norm,
        source_tokens, target_tokens, num_sentences, seconds,
    )  # fmt: skip


def timing_grid(timings: Sequence[TimingRecord], events: Sequence[Event]) -> TimingGrid | None:
    """None where no rank left a line. Times are put on the clock of the first rank's host."""
    if not timings:
        return None
    table = _table(timings, _TIMING_FIELDS)
    names = sorted({record.host for record in timings})
    numbers = {name: number for number, name in enumerate(names)}
    host = np.array([numbers[record.host] for record in timings], dtype=np.int64)
    ahead = _clock_offsets(table[:, 3], host, names, events)
    steps, row = np.unique(table[:, 0].astype(np.int64), return_inverse=True)
    ranks, column = np.unique(table[:, 1].astype(np.int64), return_inverse=True)

    def spread(values: Floats) -> Floats:
        cells = np.full((len(steps), len(ranks)), np.nan)
        cells[row, column] = values
        return cells

    def duration(values: Floats) -> Floats:
        return spread(np.where(np.isfinite(values) & (values >= 0), values, np.nan))

    attempt = np.zeros(len(steps), dtype=np.int64)
    attempt[row] = table[:, 2].astype(np.int64)
    host_of_rank = np.zeros(len(ranks), dtype=np.int64)
    host_of_rank[column] = host
    return TimingGrid(
        step=steps,
        attempt=attempt,
        ranks=tuple(int(rank) for rank in ranks),
        hosts=tuple(names[number] for number in host_of_rank),
        parts={part: duration(table[:, 4 + number]) for number, part in enumerate(PARTS)},
        wall=duration(table[:, 12]),
        sent_bytes=duration(table[:, 13]),
        card_sent_bytes=duration(table[:, 14]),
        time=spread(table[:, 3] - ahead),
        start=spread(table[:, 15] - ahead),
    )


def _table(records: Sequence[object], fields: tuple[str, ...]) -> Floats:
    """One row a record; None becomes NaN."""
    row = attrgetter(*fields)
    return np.array([row(record) for record in records], dtype=np.float64).reshape(len(records), len(fields))


def _is_steady(attempt: Integers) -> NDArray[np.bool_]:
    is_new = np.ones(len(attempt), dtype=bool)
    is_new[1:] = attempt[1:] != attempt[:-1]
    is_early = is_new.copy()
    is_early[1:] |= is_new[:-1]
    # A handful of steps is all there is: better early ones than none.
    return ~is_early if int((~is_early).sum()) >= 8 else np.ones(len(attempt), dtype=bool)


def _clock_offsets(times: Floats, host: Integers, names: Sequence[str], events: Sequence[Event]) -> Floats:
    """Seconds that each line's clock is ahead: the latest measurement at or before it, else the first."""
    ahead = np.zeros(len(times))
    for number, name in enumerate(names):
        moments, offsets = clock_offsets_of(name, events)
        if len(moments):
            is_own = host == number
            nearest = np.searchsorted(moments, times[is_own], side="right") - 1
            ahead[is_own] = offsets[np.maximum(nearest, 0)]
    return ahead


def clock_offsets_of(host: str, events: Sequence[Event]) -> tuple[Floats, Floats]:
    """When a host's clock was compared, and how far it was ahead of the first host's."""
    known: list[tuple[float, float]] = []
    for event in events:
        offsets = event.detail.get("offsets") if event.kind == "clocks" else None
        value = offsets.get(host) if isinstance(offsets, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(value, int | float) and abs(value) < MAX_OFFSET_SECONDS:  # which no NaN is either
            known.append((event.time, float(value)))
    known.sort()
    return np.array([time for time, _ in known]), np.array([offset for _, offset in known])


def has_clocks(events: Sequence[Event], hosts: Sequence[str]) -> bool:
    """Whether the clocks of all these hosts but the first one's were compared."""
    return all(len(clock_offsets_of(host, events)[0]) for host in hosts[1:])
