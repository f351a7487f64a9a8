"""Two runs on the very same dev sentences: differences with the interval that the choice of sentences leaves."""

from dataclasses import dataclass

import numpy as np

from dragoman.diagnose.comparison.quality import AT, Quality
from dragoman.diagnose.comparison.side import Curve
from dragoman.diagnose.statistics import paired_ratio_change
from dragoman.run.figures import best_by_bleu, best_by_loss
from dragoman.run.records import EvalRecord, EvalSentence

MIN_SENTENCES = 20  # fewer have no interval worth the name


@dataclass(frozen=True, slots=True)
class Paired:
    """One measure of two runs on the same sentences; `delta` is the other run's minus the reference's."""

    run: str
    name: str  # dev loss, BLEU, chrF, TER
    dev_set: str
    at: str  # equal tokens, or best of each
    steps: tuple[int, int]
    reference: float
    other: float
    delta: float
    low: float
    high: float
    p_value: float | None
    is_beyond_chance: bool
    num_sentences: int


def paired_differences(quality: Quality, number: int) -> list[Paired]:
    """Dev loss at equal tokens if both were evaluated there, else of the best evaluations; BLEU, chrF and TER of the
    best. Only of sentences that both runs kept."""
    own, other = quality.footings[0], quality.footings[number]
    found: list[Paired] = []
    if not (own.loss_reason or other.loss_reason):
        found += _paired_loss(quality, number)
    if not (own.bleu_reason or other.bleu_reason):
        found += _paired_scores(quality, number)
    return found


def _paired_loss(quality: Quality, number: int) -> list[Paired]:
    curves = (quality.footings[0].curve, quality.footings[number].curve)
    found = [_eval_at(curve, quality.common_tokens) for curve in curves]
    at = "equal tokens"
    if None in found:
        found, at = [best_by_loss(curve.evals) for curve in curves], "best of each"
    first, last = found
    if first is None or last is None:
        return []
    rows = _shared(quality, number, (first, last))
    if len(rows) < MIN_SENTENCES:
        return []
    sums = [np.array([row[side].nll_sum for row in rows], dtype=np.float64) for side in (0, 1)]
    tokens = np.array([row[0].target_tokens for row in rows], dtype=np.float64)
    change = paired_ratio_change(sums[0], sums[1], tokens)
    if change is None:
        return []
    losses = [float(column.sum() / tokens.sum()) for column in sums]
    return [
        Paired(
            quality.sides[number].name, "dev loss", curves[0].dev_set, at, (first.step, last.step), losses[0],
            losses[1], change.value, change.low, change.high, None,
            change.is_above_zero or change.is_below_zero, len(rows),
        )
    ]  # fmt: skip


def _paired_scores(quality: Quality, number: int) -> list[Paired]:
    curves = (quality.footings[0].curve, quality.footings[number].curve)
    first, last = (best_by_bleu(curve.evals) for curve in curves)
    if first is None or last is None:
        return []
    rows = [
        row for row in _shared(quality, number, (first, last)) if None not in (row[0].hypothesis, row[1].hypothesis)
    ]
    if len(rows) < MIN_SENTENCES:
        return []
    from dragoman.score import compare

    lines = [[row[side].hypothesis or "" for row in rows] for side in (0, 1)]
    language = quality.sides[0].facts.run.manifest.data.languages.partition("-")[2]
    contrasts = compare(lines[1], lines[0], [row[0].reference for row in rows], target_language=language)
    return [
        Paired(
            quality.sides[number].name, item.name, curves[0].dev_set, "best of each", (first.step, last.step),
            item.b, item.a, item.delta, item.low, item.high, item.p_value, item.is_significant, len(rows),
        )
        for item in contrasts
    ]  # fmt: skip


def _eval_at(curve: Curve, point: float | None) -> EvalRecord | None:
    if point is None or not len(curve):
        return None
    nearest = int(np.argmin(np.abs(curve.target_tokens - point)))
    return curve.evals[nearest] if abs(curve.target_tokens[nearest] - point) <= AT * point else None


def _shared(
    quality: Quality, number: int, pair: tuple[EvalRecord, EvalRecord]
) -> list[tuple[EvalSentence, EvalSentence]]:
    """Sentences of both evaluations, by their place in the dev set, where both losses are numbers."""
    runs = (quality.sides[0].facts.run, quality.sides[number].facts.run)
    ours, theirs = (
        {item.index: item for item in run.read_eval_sentences(record.step, record.dev_set)}
        for run, record in zip(runs, pair, strict=True)
    )
    both = [(ours[index], theirs[index]) for index in sorted(ours.keys() & theirs.keys())]
    return [row for row in both if np.isfinite(row[0].nll_sum) and np.isfinite(row[1].nll_sum)]
