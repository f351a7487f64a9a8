"""Two or more runs side by side. The first is the reference: every sentence says how another differs from it."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.diagnose.comparison.figures import Figure, figures_of, have_equal_steps
from dragoman.diagnose.comparison.learned import explain_quality
from dragoman.diagnose.comparison.paired import Paired, paired_differences
from dragoman.diagnose.comparison.quality import decoding_note, quality_of
from dragoman.diagnose.comparison.settings import SettingRow, differing_settings, settings_between
from dragoman.diagnose.comparison.side import Side, side_of
from dragoman.diagnose.comparison.speed import explain_speed
from dragoman.diagnose.facts import gather_facts
from dragoman.run.reader import RunRecord
from dragoman.units import plural


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of one run against the reference."""

    run: str
    explanation: str  # one sentence: what explains the difference
    quality: str  # one sentence: what was learned


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Values in every row are in the order of `names`."""

    names: tuple[str, ...]
    verdicts: tuple[Verdict, ...]  # of all runs but the first
    notes: tuple[str, ...]  # what limits the comparison
    settings: tuple[SettingRow, ...]
    figures: tuple[Figure, ...]
    paired: tuple[Paired, ...]
    currency: str | None


def compare_runs(names: Sequence[str], runs: Sequence[RunRecord]) -> RunComparison:
    """Names are short and unlike each other; at least two runs."""
    assert len(names) == len(runs) >= 2
    sides = [side_of(name, gather_facts(run)) for name, run in zip(names, runs, strict=True)]
    settings = differing_settings(sides)
    quality = quality_of(sides)
    verdicts: list[Verdict] = []
    paired: list[Paired] = []
    for number, side in enumerate(sides[1:], start=1):
        changed = settings_between(settings, number)
        found = paired_differences(quality, number)
        explanation = explain_speed(sides[0], side, changed)
        verdicts.append(Verdict(side.name, explanation, explain_quality(quality, number, found, changed)))
        paired += found
    return RunComparison(
        names=tuple(names),
        verdicts=tuple(verdicts),
        notes=tuple(_notes(sides)),
        settings=tuple(settings),
        figures=tuple(figures_of(sides, quality)),
        paired=tuple(paired),
        currency=next((side.facts.currency for side in sides if side.facts.currency), None),
    )


def _notes(sides: Sequence[Side]) -> list[str]:
    notes = [note for side in sides for note in _run_notes(side)]
    if not have_equal_steps(sides):
        notes.append("Steps differ in size, so speed is compared per target token.")
    currencies = dict.fromkeys(side.facts.currency for side in sides if side.facts.currency)
    if len(currencies) > 1:
        notes.append(f"Prices are in different currencies ({', '.join(currencies)}): costs do not compare.")
    notes += [note for side in sides[1:] if (note := decoding_note(sides[0], side))]
    return notes


def _run_notes(side: Side) -> list[str]:
    facts, notes = side.facts, list[str]()
    if not facts.is_finished:
        done = f"{facts.last_step:,}" + (f" of {facts.max_steps:,}" if facts.max_steps else "")
        is_stopped = bool(facts.spans) and facts.spans[-1].ending == "stopped"
        words = "it was stopped after step" if is_stopped else "its records end at step"
        notes.append(f"{side.name} has not finished: {words} {done}.")
    blowup = facts.learning.blowup
    if blowup is not None and not blowup.is_number:
        lost = plural(blowup.num_not_numbers, "step")
        notes.append(f"{side.name}'s training loss is no number in {lost}, from step {blowup.step:,} on.")
    num_bad = sum(1 for record in facts.run.evals if record.loss != record.loss or abs(record.loss) == float("inf"))
    if num_bad:
        notes.append(f"{side.name} has {plural(num_bad, 'evaluation')} whose loss is no number; left out.")
    if side.parts is None:
        notes.append(f"{side.name} has no timing lines: where its time went is not known.")
    return notes
