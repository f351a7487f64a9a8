"""What explains the difference in speed of two runs, in one sentence.

The difference of two step times is taken apart into the parts of a step, and each part that counts gets its cause;
settings come in where the speed does not differ. Knows no tables and nothing of quality.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.diagnose.comparison.causes import cause_of, open_question
from dragoman.diagnose.comparison.settings import SettingRow, differences_text
from dragoman.diagnose.comparison.side import MIN_STEPS, PARTS, Side
from dragoman.diagnose.wording import percent, seconds_text, times_text
from dragoman.units import plural

SAME_SPEED = 0.05  # a difference that nobody would change a run for
NUM_ERRORS = 2.5  # standard errors that chance may make of it
SAME_STEP = 1.05  # steps of this much more tokens are another unit
SHOWN = 0.1  # of the difference: a smaller part is not named
PART_WORDS = {
    "compute": "computing",
    "waiting": "waiting for the slowest rank",
    "transfer": "transfer",
    "data": "waiting for data",
    "optimizer": "the optimizer",
    "other": "time that no phase claims",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """What two runs are measured by: a step, or so many target tokens where their steps differ in size."""

    words: str  # per step
    amount: str  # a step
    factors: tuple[float, float]  # on the seconds of a step, reference first


def unit_of(reference: Side, other: Side) -> Unit:
    ours, theirs = reference.step_tokens, other.step_tokens
    if not ours or not theirs or max(ours, theirs) <= SAME_STEP * min(ours, theirs):
        return Unit("per step", "a step", (1.0, 1.0))
    return Unit("per target token", "per 1,000 target tokens", (1000 / ours, 1000 / theirs))


def explain_speed(reference: Side, other: Side, settings: Sequence[SettingRow]) -> str:
    """One sentence on why `other` is faster or slower, or what else differs where it is neither."""
    for side in (other, reference):
        if not side.has_steps:
            few = plural(len(side.facts.steps), "step")
            return f"{side.name} cannot be compared for speed: it has {few}, and fewer than {MIN_STEPS} say nothing."
    unit = unit_of(reference, other)
    ours, theirs = _measured(reference, other, unit)
    figures = f"{seconds_text(theirs)} against {seconds_text(ours)} {unit.amount}"
    if is_same_speed(reference, other):
        return _alike(reference, other, unit, figures, settings)
    head = f"{other.name} is {_how_much(ours, theirs)} {unit.words} than {reference.name} ({figures})"
    return f"{head}: {_taken_apart(reference, other, unit)}."


def is_same_speed(reference: Side, other: Side) -> bool:
    unit = unit_of(reference, other)
    ours, theirs = _measured(reference, other, unit)
    error = math.hypot(reference.step_error * unit.factors[0], other.step_error * unit.factors[1])
    return abs(theirs - ours) <= max(SAME_SPEED * min(ours, theirs), NUM_ERRORS * error)


def _measured(reference: Side, other: Side, unit: Unit) -> tuple[float, float]:
    return (reference.step_seconds or 0.0) * unit.factors[0], (other.step_seconds or 0.0) * unit.factors[1]


def part_differences(reference: Side, other: Side, unit: Unit) -> dict[str, float]:
    """Seconds that each part takes more in `other`; they sum to the difference of the two step times."""
    if reference.parts is None or other.parts is None:
        return {}
    return {part: other.parts[part] * unit.factors[1] - reference.parts[part] * unit.factors[0] for part in PARTS}


def _alike(reference: Side, other: Side, unit: Unit, figures: str, settings: Sequence[SettingRow]) -> str:
    telling = [row for row in settings if not row.is_neutral]
    shifts = _shifts(reference, other, unit)
    if not telling and not shifts:
        return (
            f"{other.name} and {reference.name} are too alike to tell apart: no setting that matters differs, "
            f"and the step times are within noise ({figures})."
        )
    # What changes how the model learns is the news where the speed is the same.
    telling = sorted(telling, key=lambda row: not row.is_about_learning)
    changed = f"; {differences_text(telling)}" if telling else ""
    return f"{other.name} and {reference.name} have the same speed within noise ({figures}){shifts}{changed}."


def _shifts(reference: Side, other: Side, unit: Unit) -> str:
    """Parts that moved against each other by more than a tenth of a step although the whole did not."""
    whole = (reference.step_seconds or 0.0) * unit.factors[0]
    deltas = part_differences(reference, other, unit)
    moved = [part for part in _by_size(deltas) if abs(deltas[part]) > SHOWN * whole]
    if not any(deltas[part] > 0 for part in moved) or not any(deltas[part] < 0 for part in moved):
        return ""
    words = [_moved_text(part, deltas[part]) for part in moved[:2]]
    return f", though {' and '.join(words)}"


def _taken_apart(reference: Side, other: Side, unit: Unit) -> str:
    deltas = part_differences(reference, other, unit)
    if not deltas:
        silent = other if other.parts is None else reference
        return f"where the time went was not recorded for {silent.name} (it has no timing lines)"
    total = sum(deltas.values())
    named = [part for part in _by_size(deltas) if abs(deltas[part]) >= SHOWN * abs(total)]
    is_against = [part for part in named if deltas[part] * total < 0]
    if is_against:
        chosen = sorted(
            {named[0], next(part for part in named if deltas[part] * total > 0), is_against[0]}, key=named.index
        )
        texts = [
            _with_cause(_moved_text(part, deltas[part]), part, reference, other, deltas[part] > 0) for part in chosen
        ]
        return ", and ".join(texts)
    first, rest = named[0], named[1:2]
    amount = "nearly all" if deltas[first] / total > 0.985 else percent(deltas[first] / total)
    lead = f"{amount} of the difference is {PART_WORDS[first]}"
    text = _with_cause(lead, first, reference, other, deltas[first] > 0)
    if text == lead and (question := open_question(first, other if total > 0 else reference)):
        text = f"{lead}, {question}"
    smaller = [f"{percent(deltas[part] / total)} is {PART_WORDS[part]}" for part in rest]
    texts = [
        _with_cause(words, part, reference, other, deltas[part] > 0) for words, part in zip(smaller, rest, strict=True)
    ]
    return "; ".join([text, *texts])


def _with_cause(text: str, part: str, reference: Side, other: Side, is_longer: bool) -> str:
    cause = cause_of(part, reference, other, is_longer)
    return f"{text}, {cause}" if cause else text


def _moved_text(part: str, delta: float) -> str:
    return f"{PART_WORDS[part]} takes {seconds_text(abs(delta))} {'more' if delta > 0 else 'less'}"


def _by_size(deltas: dict[str, float]) -> list[str]:
    return sorted(deltas, key=lambda part: -abs(deltas[part]))


def _how_much(ours: float, theirs: float) -> str:
    word = "slower" if theirs > ours else "faster"
    ratio = max(ours, theirs) / max(min(ours, theirs), 1e-12)
    if ratio >= 1.5:
        return f"{times_text(ratio)} {word}"
    return f"{percent(ratio - 1 if theirs > ours else 1 - 1 / ratio)} {word}"
