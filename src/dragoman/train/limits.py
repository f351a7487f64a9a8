"""How long a run may train, over all its attempts: minutes that a recipe gives, or hours that money buys. No torch."""

import json
from dataclasses import dataclass
from typing import Literal

from dragoman.run.checkpoint_files import STATE
from dragoman.run.folder import RunFolder
from dragoman.units import format_seconds

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class TimeLimit:
    """The nearer of both, by its name as an end of the run."""

    seconds: float
    reason: Literal["max_minutes", "max_cost"]


def cost_seconds(max_cost: float | None, price_per_hour: float | None) -> float | None:
    """What an amount buys of all hosts together; None where there is no amount."""
    if max_cost is None:
        return None
    assert price_per_hour, "an amount is taken only with a price"
    return max_cost / price_per_hour * SECONDS_PER_HOUR


def time_limit(max_minutes: float, bought_seconds: float | None) -> TimeLimit | None:
    """`max_minutes` as in a recipe: 0 is no limit."""
    limits = [TimeLimit(max_minutes * 60, "max_minutes")] if max_minutes > 0 else []
    limits += [] if bought_seconds is None else [TimeLimit(bought_seconds, "max_cost")]
    return min(limits, key=lambda limit: limit.seconds, default=None)


def reached_limit(folder: RunFolder, limit: TimeLimit | None) -> str | None:
    """One line, where the run has trained for so long already; None where it may go on."""
    if limit is None:
        return None
    try:
        state = json.loads((folder.checkpoints_path / "last" / STATE).read_text(encoding="utf-8"))
        trained_seconds, step = float(state["trained_seconds"]), int(state["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if trained_seconds < limit.seconds:
        return None
    what = "--max-cost" if limit.reason == "max_cost" else "--max-hours or train.max_minutes"
    return (
        f"the limit is reached ({limit.reason}): {format_seconds(trained_seconds)} of training to step {step:,}, "
        f"and {format_seconds(limit.seconds)} are allowed; a larger {what} goes on from there"
    )
