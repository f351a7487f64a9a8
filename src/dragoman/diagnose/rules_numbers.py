"""Findings on numbers that went wrong: what training did about steps that gave none, and a loss that blew up."""

from collections.abc import Sequence

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import Finding
from dragoman.diagnose.wording import percent
from dragoman.run.records import Event
from dragoman.units import plural

TRY = "a lower optim.learning_rate, a longer optim.warmup_steps or optim.max_norm = 1"


def diverged(facts: Facts) -> Finding | None:
    """A run that gave up says so itself; of the others the losses tell."""
    spans = facts.spans
    return _given_up(facts) if spans and spans[-1].reason == "diverged" else _blown_up(facts)


def _given_up(facts: Facts) -> Finding:
    left_out = _last_streak(facts.run.events_of("left-out"))
    first, last = (left_out[0].step, left_out[-1].step) if left_out else (facts.last_step, facts.last_step)
    backs = facts.run.events_of("rolled-back")
    before = "There was no checkpoint before it to go back to."
    if backs:
        before = f"Going back to step {backs[-1].step:,} before, with {_share(backs[-1])} of the rate, had not helped."
    return Finding(
        "diverged",
        "Training diverged, and the run ended itself",
        "problem",
        f"{plural(len(left_out), 'step')} in a row up to step {last:,} gave no number and were left out, the first at "
        f"step {first:,}{_where(left_out)}. {before}",
        f"Try {TRY}, from a checkpoint before step {first:,} or anew; where it is always one rank, look at its machine "
        "and at its text.",
        "The last checkpoint is from before it." if facts.run.checkpoints else "",
        first,
    )


def rolled_back(facts: Facts) -> Finding | None:
    """It helped, or the run still goes on; where it did not help, `diverged` tells the whole story."""
    backs = facts.run.events_of("rolled-back")
    if not backs or facts.spans[-1].reason == "diverged":
        return None
    event = backs[-1]
    left_out = _last_streak([other for other in facts.run.events_of("left-out") if other.time <= event.time])
    first = left_out[0].step if left_out else event.step + 1
    return Finding(
        "rolled-back",
        "The run went back to a checkpoint",
        "warning",
        f"{plural(len(left_out), 'step')} in a row gave no number, the first at step {first:,}{_where(left_out)}; "
        f"training went on from the checkpoint of step {event.step:,} with {_share(event)} of the learning rate.",
        f"Next time begin with {TRY}.",
        since_step=first,
    )


def _last_streak(events: Sequence[Event]) -> list[Event]:
    """The steps in a row that end with the last event; in the order of steps."""
    streak: list[Event] = []
    for event in sorted(events, key=lambda event: event.time, reverse=True):
        if streak and event.step != streak[0].step - 1:
            break
        streak.insert(0, event)
    return streak


def _where(events: Sequence[Event]) -> str:
    rank = events[0].detail.get("rank") if events else None
    return f", on rank {rank}" if isinstance(rank, int) else ""


def _share(event: Event) -> str:
    factor = event.detail.get("rate_factor")
    return percent(factor) if isinstance(factor, int | float) else "less"


def _blown_up(facts: Facts) -> Finding | None:
    blowup = facts.learning.blowup
    if blowup is None or (blowup.is_number and not facts.is_enough):
        return None
    if not blowup.is_number:
        evidence = f"{plural(blowup.num_not_numbers, 'step')} of {facts.num_steps:,} had a loss that is no number, the "
        evidence += f"first at step {blowup.step:,}."
    else:
        evidence = (
            f"The training loss rose from {blowup.best:.2f} to {blowup.last:.2f} nats per token and stayed there."
        )
    return Finding(
        "diverged",
        "Training diverged" if blowup.is_lasting else "Single steps gave no number",
        "problem" if blowup.is_lasting else "warning",
        evidence,
        f"Start again from a checkpoint before that step with {TRY}.",
        "What was trained after that step is lost." if blowup.is_lasting else "",
        blowup.step,
    )
