"""How the model learned, as numbers: evaluations, changes between them with their noise, a forecast, a blow-up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dragoman.diagnose.series import StepSeries
from dragoman.diagnose.statistics import (
    NUM_RESAMPLES,
    Estimate,
    Floats,
    block_medians,
    estimate_of,
    forecast_gain,
    paired_ratio_change,
    resample_counts,
    robust_spread,
)
from dragoman.run.reader import RunRecord
from dragoman.run.records import EvalRecord, EvalSentence
from dragoman.score import TOKENIZERS

MAX_SCORED = 500  # sentences in a bootstrap of BLEU: enough for an interval of one point, and a fifth of a second
MIN_LASTING = 2  # evaluations after the best one before a rise can be called lasting

Overfitting = Literal["no", "one higher point", "unclear", "rise without learning", "diverged", "yes"]


@dataclass(frozen=True)
class Blowup:
    """Where the training loss stopped being a number, or rose and stayed."""

    step: int
    is_number: bool
    num_not_numbers: int
    best: float  # lowest median of a block of steps
    last: float
    is_lasting: bool


@dataclass(frozen=True)
class Learning:
    """Evaluations of the first dev set, and what was computed from them. Changes are last minus earlier."""

    evals: tuple[EvalRecord, ...]
    best: int | None  # index of the lowest dev loss
    reference: int | None  # where the last third of the evaluations begins
    loss_change: Estimate | None  # since the reference
    loss_change_from_best: Estimate | None
    bleu_change: Estimate | None
    loss_gain: Estimate | None  # to expect of 50 % more steps, as a fall
    bleu_gain: Estimate | None
    is_paired: bool  # changes come from the same sentences, not from the curve alone
    overfitting: Overfitting
    blowup: Blowup | None

    @property
    def last(self) -> EvalRecord | None:
        return self.evals[-1] if self.evals else None

    @property
    def is_still_falling(self) -> bool:
        """Beyond chance, and by more than anybody could care about."""
        change = self.loss_change
        floor = 0.005 * self.evals[-1].loss if self.evals else 0.0
        return change is not None and change.is_below_zero and -change.value > max(floor, 0.001)

    @property
    def is_bleu_rising(self) -> bool:
        return self.bleu_change is not None and self.bleu_change.is_above_zero and self.bleu_change.value > 0.3


def learning_of(run: RunRecord, steps: StepSeries) -> Learning:
    dev_set = run.dev_sets[0] if run.evals else ""
    evals = tuple(record for record in run.evals_of(dev_set) if np.isfinite(record.loss))
    losses = np.array([record.loss for record in evals])
    at = np.array([record.step for record in evals], dtype=np.float64)
    best = int(np.argmin(losses)) if len(evals) else None
    reference = _reference(len(evals))
    last = len(evals) - 1
    # One evaluation has nothing to be compared with.
    compared = {index for index in (best, reference, last) if index is not None} if len(evals) > 1 else set[int]()
    sentences = {index: run.read_eval_sentences(evals[index].step, dev_set) for index in compared}
    noise = _curve_noise(at, losses)
    change, is_paired = _loss_change(evals, sentences, reference, last, noise)
    from_best, _ = _loss_change(evals, sentences, best if best != last else None, last, noise)
    bleus = np.array([record.bleu if record.bleu is not None else np.nan for record in evals])
    is_scored = np.isfinite(bleus)
    language = run.manifest.data.languages.partition("-")[2]
    bleu_change = None
    if reference is not None:
        bleu_change = _bleu_change(sentences.get(reference, []), sentences.get(last, []), language)
    paired_noise = (change.high - change.low) / 4 if change and is_paired else 0.0
    blowup = find_blowup(steps)
    has_diverged = blowup is not None and blowup.is_lasting
    return Learning(
        evals=evals,
        best=best,
        reference=reference,
        loss_change=change,
        loss_change_from_best=from_best,
        bleu_change=bleu_change if bleu_change is not None else _curve_change(at, bleus, reference),
        loss_gain=forecast_gain(at, losses, max(paired_noise, 0.001)) if len(evals) >= 4 else None,
        bleu_gain=forecast_gain(at[is_scored], 100 - bleus[is_scored], 0.1) if int(is_scored.sum()) >= 4 else None,
        is_paired=is_paired,
        overfitting="diverged" if has_diverged else _overfitting(evals, best, from_best),
        blowup=blowup,
    )


def find_blowup(steps: StepSeries) -> Blowup | None:
    """NaN and infinity, or a loss whose last steps lie far above the lowest it ever kept for a while."""
    is_number = np.isfinite(steps.loss)
    num_bad = int((~is_number).sum())
    medians, starts = block_medians(steps.nll)
    finite = medians[np.isfinite(medians)]
    best, last = (float(finite.min()), float(finite[-1])) if len(finite) else (float("nan"), float("nan"))
    if num_bad:
        tail = is_number[-max(10, len(steps) // 20) :]
        is_lasting = num_bad >= 0.02 * len(steps) or not tail.all()
        return Blowup(int(steps.step[np.argmax(~is_number)]), False, num_bad, best, last, is_lasting)
    if len(finite) < 2:
        return None
    lowest = int(np.nanargmin(medians))
    stop = starts[lowest + 1] if lowest + 1 < len(starts) else len(steps)
    limit = best + max(0.5, 0.2 * best, 3 * robust_spread(steps.nll[starts[lowest] : stop]))
    if last <= limit:
        return None
    above = np.flatnonzero(medians[lowest:] > limit)
    since = int(starts[lowest + int(above[0])]) if len(above) else 0
    return Blowup(int(steps.step[since]), True, 0, best, last, True)


def _reference(num_evals: int) -> int | None:
    return None if num_evals < 2 else min(num_evals - 2, max(0, round(num_evals * 2 / 3) - 1))


def _overfitting(evals: Sequence[EvalRecord], best: int | None, change: Estimate | None) -> Overfitting:
    if best is None or best == len(evals) - 1 or change is None:
        return "no"
    rise = max(0.01, 0.01 * abs(evals[best].loss))
    if not change.is_above_zero or change.value < rise:
        return "no"
    if len(evals) - 1 - best < MIN_LASTING:
        return "one higher point"
    trained_before, trained_after = evals[best].train_loss, evals[-1].train_loss
    if trained_before is None or trained_after is None:
        return "unclear"
    return "yes" if trained_after < trained_before else "rise without learning"


def _loss_change(
    evals: Sequence[EvalRecord],
    sentences: dict[int, list[EvalSentence]],
    first: int | None,
    last: int,
    noise: float,
) -> tuple[Estimate | None, bool]:
    """Of the same sentences where they were kept; else of the two points, with the noise of the curve."""
    if first is None or first >= last:
        return None, False
    rows = {item.index: item for item in sentences.get(first, [])}
    pairs = [(rows[item.index], item) for item in sentences.get(last, []) if item.index in rows]
    if len(pairs) >= 20:
        before = np.array([item.nll_sum for item, _ in pairs])
        after = np.array([item.nll_sum for _, item in pairs])
        tokens = np.array([item.target_tokens for _, item in pairs], dtype=np.float64)
        paired = paired_ratio_change(before, after, tokens)
        if paired is not None:
            return paired, True
    delta = evals[last].loss - evals[first].loss
    margin = 1.96 * 2**0.5 * noise
    return Estimate(delta, delta - margin, delta + margin), False


def _curve_noise(at: Floats, values: Floats) -> float:
    """How far a point lies from the line between its neighbours, as the noise of one point."""
    if len(values) < 3:
        return 0.02 * float(np.abs(values).max()) if len(values) else 0.0
    between = values[:-2] + (values[2:] - values[:-2]) * (at[1:-1] - at[:-2]) / np.maximum(at[2:] - at[:-2], 1)
    off = np.abs(values[1:-1] - between)
    # Early on the curve bends so strongly that the bend would be taken for noise.
    late = off[len(off) // 2 :]
    return max(float(np.median(late)) / 1.22, 0.002 * float(np.abs(values[-1])))


def _curve_change(at: Floats, values: Floats, first: int | None) -> Estimate | None:
    is_known = np.isfinite(values)
    if first is None or len(values) < 3 or not (is_known[first] and is_known[-1]):
        return None
    delta = float(values[-1] - values[first])
    margin = 1.96 * 2**0.5 * max(_curve_noise(at[is_known], values[is_known]), 0.3)
    return Estimate(delta, delta - margin, delta + margin)


def _bleu_change(before: Sequence[EvalSentence], after: Sequence[EvalSentence], language: str) -> Estimate | None:
    """Of real translations of the same sentences, resampled together."""
    rows = {item.index: item.hypothesis for item in before if item.hypothesis is not None}
    shared = [item for item in after if item.hypothesis is not None and item.index in rows][:MAX_SCORED]
    if len(shared) < 20:
        return None
    from sacrebleu.metrics.bleu import BLEU

    metric: Any = BLEU(tokenize=TOKENIZERS.get(language, "13a"), force=True)
    references = [[item.reference for item in shared]]
    first, last = (
        np.asarray(metric._extract_corpus_statistics(lines, references), dtype=np.float64)
        for lines in ([rows[item.index] for item in shared], [item.hypothesis for item in shared])
    )

    def score(summed: Floats) -> float:
        return float(metric._compute_score_from_stats(summed.tolist()).score)

    counts = resample_counts(len(shared))
    firsts, lasts = counts @ first, counts @ last
    deltas = np.array([score(lasts[row]) - score(firsts[row]) for row in range(NUM_RESAMPLES)])
    return estimate_of(score(last.sum(0)) - score(first.sum(0)), deltas)
