"""How fast a run goes and when it will be done. Numbers only, from what was read last."""

import math

from dragoman.web.watch.live import LiveRun


def max_steps(live: LiveRun) -> int | None:
    value = live.setting("train", "max_steps")
    return value if isinstance(value, int) and value > 0 else None


def done_share(live: LiveRun) -> float | None:
    """0 to 1 of the planned steps."""
    planned = max_steps(live)
    if planned is None or live.last is None:
        return None
    return min(1.0, live.last.step / planned)


def tokens_per_second(live: LiveRun) -> float | None:
    """Target tokens, over the recent steps alone."""
    seconds = sum(step.step_seconds for step in live.recent)
    return sum(step.target_tokens for step in live.recent) / seconds if seconds > 0 else None


def elapsed_seconds(live: LiveRun) -> float | None:
    """Of the newest attempt, from its first step to the last one heard of."""
    if live.first_time is None or live.last is None:
        return None
    return max(0.0, live.last.time - live.first_time)


def left_seconds(live: LiveRun) -> float | None:
    """At the recent pace, with as much time beside the steps (evaluating, saving) as this attempt has spent so far."""
    planned, pace, elapsed = max_steps(live), live.recent_step_seconds, elapsed_seconds(live)
    if planned is None or pace is None or elapsed is None or live.last is None or live.trained_seconds <= 0:
        return None
    beside = max(1.0, elapsed / live.trained_seconds)
    left = max(0, planned - live.last.step) * pace * beside
    return left if math.isfinite(left) else None


def recent_parts(live: LiveRun) -> list[tuple[str, float]]:
    """(part, share) of the first rank's recent steps, in the order of a step; parts that took nothing are left out."""
    names = ("data", "forward", "backward", "exchange", "optimizer", "validation", "checkpoint", "other")
    seconds = {name: sum(getattr(item, f"{name}_seconds") for item in live.timings) for name in names}
    total = sum(seconds.values())
    return [(name, value / total) for name, value in seconds.items() if value > 0] if total > 0 else []
