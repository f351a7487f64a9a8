"""One run as a comparison sees it: the seconds of its step, part by part, and its curve of evaluations. No verdicts."""

from dataclasses import dataclass

import numpy as np

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.link import exchange_name
from dragoman.diagnose.series import TimingGrid
from dragoman.diagnose.split import Split
from dragoman.diagnose.statistics import Floats, finite_mean
from dragoman.run.records import EvalRecord

PARTS = ("compute", "waiting", "transfer", "data", "optimizer", "other")
MIN_STEPS = 4  # fewer have no spread to judge a difference by
NUM_BLOCKS = 10


@dataclass(frozen=True)
class Side:
    """A run under its short name. Parts are those of the rank that computes fastest: what others are slower by is
    then waiting for them, and not half of it computing."""

    name: str
    facts: Facts
    parts: dict[str, float] | None  # seconds of a step; None without timing lines
    step_seconds: float | None  # without validation and checkpoint
    step_error: float  # standard error of that mean
    step_tokens: float | None  # target tokens of a step

    @property
    def method(self) -> str:
        """Of the exchange, in force."""
        if self.facts.num_ranks < 2 or self.facts.run.manifest.exchange is None:
            return ""
        return exchange_name(self.facts.run)

    @property
    def has_steps(self) -> bool:
        return self.step_seconds is not None and len(self.facts.steps) >= MIN_STEPS


@dataclass(frozen=True)
class Curve:
    """The evaluations of one dev set whose loss is a number, by target tokens and by seconds of training."""

    dev_set: str
    evals: tuple[EvalRecord, ...]
    target_tokens: Floats
    seconds: Floats  # of steps alone: how often a run evaluates and saves is no part of how it learns

    def __len__(self) -> int:
        return len(self.evals)

    @property
    def losses(self) -> Floats:
        return np.array([record.loss for record in self.evals], dtype=np.float64)

    @property
    def bleus(self) -> Floats:
        return np.array([np.nan if record.bleu is None else record.bleu for record in self.evals], dtype=np.float64)


def side_of(name: str, facts: Facts) -> Side:
    steps = facts.steps
    steady = steps.seconds[steps.is_steady]
    parts = _parts(facts.grid, facts.split) if facts.grid is not None and facts.split is not None else None
    tokens = finite_mean(steps.target_tokens[steps.target_tokens > 0])
    seconds = sum(parts.values()) if parts else finite_mean(steady)
    return Side(name, facts, parts, seconds if seconds and len(steps) else None, mean_error(steady), tokens)


def curve_of(facts: Facts, dev_set: str) -> Curve:
    """Tokens and seconds are counted from the steps that stayed, not from those that were done again."""
    steps = facts.steps
    evals = tuple(record for record in facts.run.evals_of(dev_set) if np.isfinite(record.loss)) if len(steps) else ()
    at = np.array([record.step for record in evals], dtype=np.float64)
    tokens, seconds = (np.cumsum(np.nan_to_num(column)) for column in (steps.target_tokens, steps.seconds))
    by_step = steps.step.astype(np.float64)

    def reached(total: Floats) -> Floats:
        return np.interp(at, by_step, total) if len(at) else np.zeros(0)

    return Curve(dev_set, evals, reached(tokens), reached(seconds))


def mean_error(values: Floats) -> float:
    """Standard error of a mean over steps, from blocks of neighbours: a slow minute hits many steps at once."""
    finite = values[np.isfinite(values)]
    num_blocks = min(NUM_BLOCKS, len(finite) // 2)
    if num_blocks < 2:
        return float("inf")
    means = np.array([block.mean() for block in np.array_split(finite, num_blocks)])
    return float(means.std(ddof=1) / np.sqrt(num_blocks))


def _parts(grid: TimingGrid, split: Split) -> dict[str, float]:
    rank = _fastest_rank(grid)
    steady = grid.is_steady

    def mean(values: Floats) -> float:
        return finite_mean(values[steady]) or 0.0

    own = {name: column[:, rank] for name, column in grid.parts.items()}
    # Once all ranks are there, the bytes take as long for one as for the others.
    transfer = np.fmin(split.transfer, own["exchange"])
    return {
        "compute": mean(own["forward"]) + mean(own["backward"]),
        "waiting": mean(np.maximum(own["exchange"] - transfer, 0.0)),
        "transfer": mean(transfer),
        "data": mean(own["data"]),
        "optimizer": mean(own["optimizer"]),
        "other": mean(own["other"]),
    }


def _fastest_rank(grid: TimingGrid) -> int:
    """Column of the rank that comes to the exchange soonest; one that left few lines is not asked."""
    own = grid.parts["data"] + grid.parts["forward"] + grid.parts["backward"]
    counts = np.isfinite(own).sum(0)
    means = [
        finite_mean(own[:, column]) if counts[column] >= 0.9 * counts.max() else None for column in range(own.shape[1])
    ]
    return int(np.argmin([np.inf if mean is None else mean for mean in means]))
