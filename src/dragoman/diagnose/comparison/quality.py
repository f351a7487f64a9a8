"""What several runs learned, side by side: whether it may be compared, and where their curves meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dragoman.diagnose.comparison.side import Curve, Side, curve_of
from dragoman.diagnose.facts import recipe_value
from dragoman.diagnose.statistics import Floats
from dragoman.run.records import EvalSentence

AT = 0.01  # an evaluation this near counts as being there


@dataclass(frozen=True)
class Footing:
    """How far a run's evaluations compare with the reference's. A reason that is not empty says why they do not."""

    curve: Curve
    loss_reason: str
    bleu_reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A value at a common point of two curves."""

    value: float
    is_exact: bool  # an evaluation was there; else it lies on the line between two


@dataclass(frozen=True)
class Quality:
    """The footings of all runs (the reference's own first) and the points at which they meet."""

    sides: tuple[Side, ...]
    footings: tuple[Footing, ...]

    @cached_property
    def common_tokens(self) -> float | None:
        return self._common([footing.curve.target_tokens for footing in self._comparable])

    @cached_property
    def common_seconds(self) -> float | None:
        return self._common([footing.curve.seconds for footing in self._comparable])

    @property
    def _comparable(self) -> list[Footing]:
        return [footing for footing in self.footings if not footing.loss_reason and len(footing.curve)]

    def _common(self, axes: list[Floats]) -> float | None:
        return min(float(axis[-1]) for axis in axes) if len(axes) > 1 else None

    def loss_at_tokens(self, number: int) -> Reading | None:
        footing = self.footings[number]
        return _reading(footing.curve.target_tokens, footing.curve.losses, self.common_tokens, footing.loss_reason)

    def loss_at_seconds(self, number: int) -> Reading | None:
        footing = self.footings[number]
        return _reading(footing.curve.seconds, footing.curve.losses, self.common_seconds, footing.loss_reason)

    def bleu_at_tokens(self, number: int) -> Reading | None:
        footing = self.footings[number]
        return _reading(footing.curve.target_tokens, footing.curve.bleus, self.common_tokens, footing.bleu_reason)

    def bleu_at_seconds(self, number: int) -> Reading | None:
        footing = self.footings[number]
        return _reading(footing.curve.seconds, footing.curve.bleus, self.common_seconds, footing.bleu_reason)


def quality_of(sides: Sequence[Side]) -> Quality:
    """The dev set is the reference's first one."""
    reference = sides[0]
    dev_sets = reference.facts.run.dev_sets
    own = curve_of(reference.facts, dev_sets[0] if dev_sets else "")
    empty = "" if len(own) else f"{reference.name} has no evaluation with a loss that is a number"
    footings = [Footing(own, empty, empty)]
    footings += [_footing(reference, own, side) for side in sides[1:]]
    return Quality(tuple(sides), tuple(footings))


def _footing(reference: Side, own: Curve, side: Side) -> Footing:
    names = side.facts.run.dev_sets
    curve = curve_of(side.facts, own.dev_set if own.dev_set in names or not names else names[0])
    for name, entry in ((reference.name, own), (side.name, curve)):
        if not len(entry):
            reason = f"{name} has no evaluation with a loss that is a number"
            return Footing(curve, reason, reason)
    unlike = _unlike_sentences(reference, own, side, curve)
    if unlike:
        return Footing(curve, unlike, unlike)
    ours, theirs = reference.facts.run.manifest.data, side.facts.run.manifest.data
    loss_reason = ""
    if ours.fingerprint != theirs.fingerprint:
        prints = f"{ours.fingerprint[:8]} and {theirs.fingerprint[:8]}"
        loss_reason = f"the prepared data differ (fingerprints {prints}), and a loss per token depends on the pieces"
    return Footing(curve, loss_reason, _bleu_reason(own, curve))


def _unlike_sentences(reference: Side, own: Curve, side: Side, curve: Curve) -> str:
    """Empty where both dev sets are the same sentences, as far as can be known."""
    texts = [
        {item.index: (item.source, item.reference) for item in _last_sentences(entry, points)}
        for entry, points in ((reference, own), (side, curve))
    ]
    names = f"{own.dev_set} and {curve.dev_set}" if own.dev_set != curve.dev_set else own.dev_set
    if all(texts):
        return "" if texts[0] == texts[1] else f"the dev sets hold different sentences ({names})"
    sizes = [(points.evals[-1].num_sentences, points.evals[-1].target_tokens) for points in (own, curve)]
    is_same_data = reference.facts.run.manifest.data.fingerprint == side.facts.run.manifest.data.fingerprint
    if own.dev_set == curve.dev_set and sizes[0] == sizes[1] and is_same_data:
        return ""
    return f"the dev sets differ or were not kept ({names}; {sizes[0][0]:,} and {sizes[1][0]:,} sentences)"


def _bleu_reason(own: Curve, curve: Curve) -> str:
    last = [
        next((record for record in reversed(points.evals) if record.bleu is not None), None) for points in (own, curve)
    ]
    if last[0] is None or last[1] is None:
        return "not decoded in both runs"
    if last[0].bleu_signature != last[1].bleu_signature:
        return f"BLEU was computed in two ways ({last[0].bleu_signature} and {last[1].bleu_signature})"
    if last[0].num_decoded != last[1].num_decoded:
        return f"BLEU is of {last[0].num_decoded:,} sentences in one run and of {last[1].num_decoded:,} in the other"
    return ""


def decoding_note(reference: Side, side: Side) -> str:
    """BLEU of two beam widths compares two ways of searching too."""
    beams = [recipe_value(entry.facts.run, "evaluate", "beam") for entry in (reference, side)]
    if beams[0] == beams[1] or None in beams:
        return ""
    return f"BLEU was decoded with beam {beams[0]} in {reference.name} and beam {beams[1]} in {side.name}."


def _reading(axis: Floats, values: Floats, point: float | None, reason: str) -> Reading | None:
    is_known = np.isfinite(values)
    axis, values = axis[is_known], values[is_known]
    # Just beyond the ends is still there: sums of tokens and seconds are rounded.
    if reason or point is None or not len(axis) or not axis[0] * (1 - AT) <= point <= axis[-1] * (1 + AT):
        return None
    nearest = int(np.argmin(np.abs(axis - point)))
    if abs(axis[nearest] - point) <= AT * point:
        return Reading(float(values[nearest]), True)
    return Reading(float(np.interp(point, axis, values)), False)


def _last_sentences(side: Side, curve: Curve) -> list[EvalSentence]:
    return side.facts.run.read_eval_sentences(curve.evals[-1].step, curve.dev_set)
