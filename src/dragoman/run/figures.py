"""Plain figures of a run: durations, rates, best evaluations. No verdict, no formatting."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.run.reader import RunRecord
from dragoman.run.records import EvalRecord, Event

Ending = Literal["finished", "stopped", "cut off"]
# Why a run ended, by the word in its last event.
REASONS = {
    "max_steps": "all planned steps are done",
    "max_minutes": "the time given to it was up",
    "max_cost": "the money given to it was spent",
    "patience": "the dev loss had stopped falling",
    "interrupted": "it was asked to stop",
    "preempted": "a signal told it to save and leave",
    "diverged": "its numbers went wrong, and going back to a checkpoint did not help",
}


@dataclass(frozen=True, slots=True)
class AttemptSpan:
    """One attempt as the records show it; the gap to the next one is nobody's working time."""

    attempt: int
    start: float  # unix seconds
    end: float  # of its last record
    first_step: int | None
    last_step: int | None
    num_steps: int
    num_lost_steps: int  # done again, by a later attempt or after a rollback
    lost_seconds: float
    command: str
    world_size: int | None
    ending: Ending
    reason: str  # of a stop or an end, where one was recorded

    @property
    def seconds(self) -> float:
        return max(0.0, self.end - self.start)


def attempt_spans(run: RunRecord) -> list[AttemptSpan]:
    """Every attempt that left a trace, in order."""
    attempts = {record.attempt for record in (*run.manifest.attempts, *run.steps, *run.lost_steps, *run.events)}
    return [_span(run, attempt) for attempt in sorted(attempts)]


def duration_seconds(run: RunRecord) -> float:
    """Time spent working, over all attempts, without the gaps between them."""
    return sum(span.seconds for span in attempt_spans(run))


def mean_step_seconds(run: RunRecord) -> float | None:
    seconds = _step_seconds(run)
    return statistics.fmean(seconds) if seconds else None


def median_step_seconds(run: RunRecord) -> float | None:
    seconds = _step_seconds(run)
    return statistics.median(seconds) if seconds else None


def target_tokens_per_second(run: RunRecord) -> float | None:
    """While training: validation and checkpoints are not in the steps' seconds."""
    seconds = sum(_step_seconds(run))
    return sum(step.target_tokens for step in run.steps) / seconds if seconds > 0 else None


def _step_seconds(run: RunRecord) -> list[float]:
    return [step.step_seconds for step in run.steps if math.isfinite(step.step_seconds)]


def best_by_loss(evals: Iterable[EvalRecord]) -> EvalRecord | None:
    """Lowest loss; NaN never wins, and the earliest of equals does."""
    finite = [record for record in evals if math.isfinite(record.loss)]
    return min(finite, key=lambda record: record.loss, default=None)


def best_by_bleu(evals: Iterable[EvalRecord]) -> EvalRecord | None:
    """Highest BLEU among the evaluations that were decoded."""
    decoded = [(record.bleu, record) for record in evals if record.bleu is not None and math.isfinite(record.bleu)]
    return max(decoded, key=lambda pair: pair[0], default=(None, None))[1]


def _span(run: RunRecord, attempt: int) -> AttemptSpan:
    kept = [step for step in run.steps if step.attempt == attempt]
    lost = [step for step in run.lost_steps if step.attempt == attempt]
    steps = sorted([*kept, *lost], key=lambda record: record.step)
    events = [event for event in run.events if event.attempt == attempt]
    entry = next((entry for entry in run.manifest.attempts if entry.attempt == attempt), None)
    starts = [entry.time] if entry else [event.time for event in events]
    starts += [steps[0].time - steps[0].step_seconds] if steps else []
    ends = [record.time for record in (*steps, *events)]
    ends += [record.time for record in run.evals if record.attempt == attempt]
    start = min(starts)
    ending, reason = _ending(events)
    return AttemptSpan(
        attempt=attempt,
        start=start,
        end=max(ends, default=start),
        first_step=steps[0].step if steps else None,
        last_step=steps[-1].step if steps else None,
        num_steps=len(steps),
        num_lost_steps=len(lost),
        lost_seconds=sum(step.step_seconds for step in lost),
        command=entry.command if entry else "",
        world_size=entry.world_size if entry else None,
        ending=ending,
        reason=reason,
    )


def _ending(events: Sequence[Event]) -> tuple[Ending, str]:
    for event in reversed(events):
        if event.kind == "finished" or event.kind == "stopped":
            return event.kind, str(event.detail.get("reason", ""))
    return "cut off", ""
