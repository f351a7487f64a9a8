"""Where the time of a step went, with the exchange split into waiting for the slowest rank and transfer."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dragoman.diagnose.series import TimingGrid
from dragoman.diagnose.statistics import Floats, finite_mean, finite_median

SplitSource = Literal["starts", "least wait", "alone"]


@dataclass(frozen=True)
class Split:
    """Mean seconds of a step and rank, steady steps only, and whole-run totals of what is not in a step."""

    compute_seconds: float  # forward and backward
    optimizer_seconds: float
    data_seconds: float
    waiting_seconds: float  # for the slowest rank
    transfer_seconds: float  # exposed: what the step waited for bytes once all ranks were there
    other_seconds: float
    validation_seconds: float  # of the whole run, one rank's
    checkpoint_seconds: float
    wall_seconds: float  # of the whole run, one rank's
    num_steps: int
    source: SplitSource
    transfer: Floats  # per step, mean over ranks
    step: Floats  # seconds per step, mean over ranks
    is_steady: Floats

    @property
    def step_seconds(self) -> float:
        return (
            self.compute_seconds + self.optimizer_seconds + self.data_seconds
            + self.waiting_seconds + self.transfer_seconds + self.other_seconds
        )  # fmt: skip

    @property
    def computing_share(self) -> float:
        return self.share(self.compute_seconds + self.optimizer_seconds)

    @property
    def transfer_share(self) -> float:
        return self.share(self.transfer_seconds)

    @property
    def usual_transfer_share(self) -> float:
        """Of the median step: one long hiccup does not move it."""
        return self.usual_share(self.transfer)

    def share(self, seconds: float) -> float:
        return seconds / self.step_seconds if self.step_seconds > 0 else 0.0

    def usual_share(self, seconds: Floats) -> float:
        steady = self.is_steady > 0
        part, whole = finite_median(seconds[steady]), finite_median(self.step[steady])
        return part / whole if part is not None and whole else 0.0


@dataclass(frozen=True)
class Straggler:
    """The rank or host that the others wait for, and by how much."""

    rank: int
    host: str
    is_whole_host: bool
    last_share: float  # of the steps in which it was last
    late_seconds: float  # median over the steps
    own_seconds: float  # its compute and data, median
    others_seconds: float
    is_data: bool  # its lateness comes from waiting for data


def split_of(grid: TimingGrid, has_clocks: bool) -> Split:
    """Means over steady steps; `has_clocks` says whether starts of different hosts may be compared."""
    waiting, source = _waiting(grid, has_clocks)
    exchange = grid.parts["exchange"]
    transfer = np.maximum(exchange - np.nan_to_num(waiting), 0.0)
    steady = grid.is_steady

    def mean(values: Floats) -> float:
        return finite_mean(values[steady]) or 0.0

    return Split(
        compute_seconds=mean(grid.parts["forward"]) + mean(grid.parts["backward"]),
        optimizer_seconds=mean(grid.parts["optimizer"]),
        data_seconds=mean(grid.parts["data"]),
        waiting_seconds=mean(waiting),
        transfer_seconds=mean(transfer),
        other_seconds=mean(grid.parts["other"]),
        validation_seconds=float(np.nansum(_rank_mean(grid.parts["validation"]))),
        checkpoint_seconds=float(np.nansum(_rank_mean(grid.parts["checkpoint"]))),
        wall_seconds=float(np.nansum(_rank_mean(grid.wall))),
        num_steps=len(grid.step),
        source=source,
        transfer=_rank_mean(transfer),
        step=_rank_mean(grid.step_seconds),
        is_steady=steady.astype(np.float64),
    )


def _waiting(grid: TimingGrid, has_clocks: bool) -> tuple[Floats, SplitSource]:
    """Seconds each rank waited in the exchange before the last one came to it."""
    exchange = grid.parts["exchange"]
    if len(grid.ranks) < 2:
        return np.zeros_like(exchange), "alone"
    if are_starts_known(grid, has_clocks):
        latest = np.max(np.where(np.isfinite(grid.start), grid.start, -np.inf), axis=1, keepdims=True)
        behind = np.where(np.isfinite(grid.start), latest - grid.start, 0.0)
        return np.clip(behind, 0.0, np.nan_to_num(exchange)), "starts"
    # The rank that came last waits for the transfer alone, so the shortest wait of a step is the transfer.
    shortest = np.min(np.where(np.isfinite(exchange), exchange, np.inf), axis=1, keepdims=True)
    return np.maximum(np.nan_to_num(exchange) - np.where(np.isfinite(shortest), shortest, 0.0), 0.0), "least wait"


def are_starts_known(grid: TimingGrid, has_clocks: bool) -> bool:
    return bool(np.isfinite(grid.start).mean() > 0.5) and (has_clocks or grid.num_hosts == 1)


def find_straggler(grid: TimingGrid, has_clocks: bool) -> Straggler | None:
    """The rank that most steps wait for. Only a candidate: how late is too late is a rule's business."""
    if len(grid.ranks) < 2:
        return None
    starts = grid.start if are_starts_known(grid, has_clocks) else -grid.parts["exchange"]
    is_whole = np.all(np.isfinite(starts), axis=1) & grid.is_steady
    own = sum((np.nan_to_num(grid.parts[part]) for part in ("data", "forward", "backward")), np.zeros_like(grid.wall))
    starts, own, data = starts[is_whole], own[is_whole], np.nan_to_num(grid.parts["data"])[is_whole]
    if len(starts) < 2:
        return None
    groups = _groups(grid)
    names = list(groups)
    # A host is late when its last rank is; with one rank a host both are the same.
    group_starts = np.stack([starts[:, columns].max(1) for columns in groups.values()], axis=1)
    winner, last_share = _usually_last(group_starts)
    others = np.delete(group_starts, winner, axis=1)
    late = np.median(group_starts[:, winner] - others.max(1))
    columns = groups[names[winner]]
    rest = [column for column in range(len(grid.ranks)) if column not in columns]
    slow = columns[int(np.argmax(np.median(own[:, columns], axis=0)))]
    own_seconds, others_seconds = float(np.median(own[:, slow])), float(np.median(own[:, rest]))
    extra_data = float(np.median(data[:, slow]) - np.median(data[:, rest]))
    return Straggler(
        rank=grid.ranks[slow],
        host=grid.hosts[slow],
        is_whole_host=grid.num_hosts > 1 and len(columns) > 1,
        last_share=last_share,
        late_seconds=float(late),
        own_seconds=own_seconds,
        others_seconds=others_seconds,
        is_data=extra_data > 0.5 * max(own_seconds - others_seconds, 1e-9),
    )


def _groups(grid: TimingGrid) -> dict[str, list[int]]:
    """Columns by host where there are several hosts, else each rank by itself."""
    groups: dict[str, list[int]] = {}
    for column, (rank, host) in enumerate(zip(grid.ranks, grid.hosts, strict=True)):
        groups.setdefault(host if grid.num_hosts > 1 else str(rank), []).append(column)
    return groups


def _usually_last(starts: Floats) -> tuple[int, float]:
    last = np.argmax(starts, axis=1)
    counts = np.bincount(last, minlength=starts.shape[1])
    winner = int(np.argmax(counts))
    return winner, float(counts[winner] / len(last))


def _rank_mean(values: Floats) -> Floats:
    """Mean over ranks, NaN where none has a value."""
    count = np.isfinite(values).sum(1)
    return np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)
