"""Charts of what the model learned: losses, scores, learning rate, gradient norm."""

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import numpy as np

from dragoman.diagnose.facts import Facts
from dragoman.plan.schedule import lr_at
from dragoman.report.charts.drawing import (
    Figure,
    Look,
    Row,
    axis,
    bucket_rows,
    curve,
    data,
    finish,
    is_number,
    ring,
)
from dragoman.report.palette import COLOURS
from dragoman.report.series import Bucket, Floats, buckets_of, length_bins, spread
from dragoman.run.figures import best_by_bleu, best_by_loss
from dragoman.run.records import EvalRecord

MAX_RINGS = 25
MAX_DEV_SETS = 3


def training_loss(facts: Facts) -> Figure | None:
    """Loss and plain negative log-likelihood of the training steps, both with dropout."""
    rows = [
        *bucket_rows("loss, smoothed labels", _by_step(facts, facts.steps.loss)),
        *bucket_rows("negative log-likelihood", _by_step(facts, facts.steps.nll)),
    ]
    if not rows:
        return None
    caption = "Per target token, with dropout. Band: lowest and highest step."
    return Figure("training-loss", "Training loss", caption, curve(rows, Look("nats per token", has_band=True)))


def dev_loss(facts: Facts) -> Figure | None:
    """Dev loss and the loss on fixed training pairs, measured alike."""
    run = facts.run
    rows: list[Row] = []
    for number, dev_set in enumerate(run.dev_sets[:MAX_DEV_SETS]):
        evals = run.evals_of(dev_set)
        rows += _eval_rows(dev_set, evals, lambda record: record.loss)
        if number == 0:
            rows += _eval_rows("training pairs", evals, lambda record: record.train_loss)
    if not rows:
        return None
    caption = "Negative log-likelihood, without dropout and smoothing on both: these curves may be compared."
    best = best_by_loss(run.evals_of(run.dev_sets[0]))
    marks = [ring(best.step, best.loss, f"{best.loss:.3f}")] if best else []
    chart = curve(rows, Look("nats per token"), *marks)
    return Figure("dev-loss", "Dev loss and training loss on one footing", caption, chart)


def scores(facts: Facts) -> Figure | None:
    """BLEU and chrF of the dev translations."""
    run = facts.run
    evals = run.evals_of(run.dev_sets[0]) if run.dev_sets else []
    rows = [
        *_eval_rows("BLEU", evals, lambda record: record.bleu),
        *_eval_rows("chrF", evals, lambda record: record.chrf),
    ]
    if not rows:
        return None
    best = best_by_bleu(evals)
    marks = [ring(best.step, best.bleu, f"{best.bleu:.1f}")] if best and best.bleu is not None else []
    caption = f"Translations of {evals[-1].num_decoded:,} sentences of {evals[-1].dev_set}, detokenized."
    return Figure("scores", "BLEU and chrF", caption, curve(rows, Look("score"), *marks))


def learning_rate(facts: Facts) -> Figure | None:
    """The recorded curve, with rings where the formula of the recipe puts it."""
    rates = facts.steps.learning_rate
    buckets = _by_step(facts, rates)
    rows = bucket_rows("learning rate", buckets)
    if not rows:
        return None
    peak = int(np.nanargmax(np.where(np.isfinite(rates), rates, np.nan)))
    caption = f"Highest at step {int(facts.steps.step[peak]):,}: {rates[peak]:.2g}."
    expected = _formula_rows(facts, [int(bucket.x) for bucket in buckets])
    rings: list[Any] = []
    if expected:
        caption = f"Line: recorded. Rings: the recipe's formula. {caption}"
        rings = [alt.Chart(data(expected)).mark_point(size=46, color=COLOURS["second"], strokeWidth=1.5, opacity=1)]
    look = Look("learning rate", number_format=".2~g", from_zero=True)
    chart = curve(rows, look, *(mark.encode(x="x:Q", y="value:Q") for mark in rings))
    return Figure("learning-rate", "Learning rate", caption, chart)


def _formula_rows(facts: Facts, steps: list[int]) -> list[Row]:
    if facts.optim is None or facts.model is None:
        return []
    max_steps = facts.max_steps or facts.last_step
    return [
        {"x": step, "value": lr_at(step, facts.optim, facts.model.d_model, max_steps)}
        for step in spread(steps, MAX_RINGS)
    ]


def gradient_norm(facts: Facts) -> Figure | None:
    buckets = _by_step(facts, facts.steps.gradient_norm)
    rows = bucket_rows("gradient norm", buckets)
    if not rows:
        return None
    lows = [bucket.low for bucket in buckets if bucket.low is not None]
    highs = [bucket.high for bucket in buckets if bucket.high is not None]
    is_log = min(lows) > 0 and max(highs) / min(lows) > 30
    caption = "Global norm, before clipping. Band: lowest and highest step."
    look = Look("norm, logarithmic" if is_log else "norm", has_band=True, is_log=is_log)
    return Figure("gradient-norm", "Gradient norm", caption, curve(rows, look))


def loss_by_length(facts: Facts) -> Figure | None:
    """Dev loss of the last evaluation by the length of the reference."""
    run = facts.run
    last = run.evals_of(run.dev_sets[0])[-1] if run.dev_sets else None
    bins = length_bins(run.read_eval_sentences(last.step, last.dev_set)) if last else []
    if last is None or not bins:
        return None
    rows: list[Row] = [{"length": entry.label, "loss": entry.loss} for entry in bins]
    chart = (
        alt.Chart(data(rows))
        .mark_bar(color=COLOURS["first"], width={"band": 0.86})
        .encode(
            x=alt.X("length:N", sort=None, title="target tokens of the sentence", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("loss:Q", title="nats per token", axis=axis(",.4~g")),
        )
    )
    caption = f"At step {last.step:,}; each bar stands for about as many sentences of {last.dev_set}."
    return Figure("loss-by-length", "Dev loss by sentence length", caption, finish(chart))


def _by_step(facts: Facts, values: Floats) -> list[Bucket]:
    return buckets_of(facts.steps.step.astype(np.float64), values)


def _eval_rows(series: str, evals: Sequence[EvalRecord], value: Callable[[EvalRecord], float | None]) -> list[Row]:
    points = [(record.step, value(record)) for record in evals]
    return [{"series": series, "x": step, "value": number} for step, number in points if is_number(number)]
