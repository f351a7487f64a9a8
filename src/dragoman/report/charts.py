"""The report's charts, each defined once and drawn as SVG or PNG. Knows records and colours, not the page.

Every colour is one of `COLOURS`, so that the page's style sheet can exchange it in the dark.
"""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt

from dragoman.report.series import Bucket, Share, bucket_steps, histogram, length_bins
from dragoman.run.figures import best_by_bleu, best_by_loss, median_step_seconds
from dragoman.run.reader import RunRecord
from dragoman.run.records import EvalRecord, StepRecord

COLOURS = {
    "ink": "#374151",
    "muted": "#6b7281",
    "grid": "#e5e7ec",
    "first": "#2563a8",
    "second": "#c8622d",
    "third": "#3f8f6b",
    "fourth": "#7a5ba8",
}
PART_COLOURS = {
    "forward": "#2a6cb3",
    "backward": "#6097cf",
    "optimizer": "#a3c4e4",
    "exchange": "#d0672f",
    "data": "#e3ab45",
    "validation": "#3e9270",
    "checkpoint": "#8ac2aa",
    "other": "#b9bfc8",
}
SERIES = [COLOURS[name] for name in ("first", "second", "third", "fourth")]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
WIDTH, HEIGHT = 420, 220
# Few points are drawn as points too: a line through one of them is nothing to see.
MAX_DOTS = 40


@dataclass(frozen=True)
class Figure:
    """A chart with the words that go around it."""

    key: str
    title: str
    caption: str
    chart: Any


def draw_figures(run: RunRecord) -> list[Figure]:
    """Every chart for which there are records, in reading order."""
    drawn = [
        training_loss(run),
        dev_loss(run),
        translation_scores(run),
        learning_rate(run),
        gradient_norm(run),
        tokens_per_second(run),
        step_times(run),
        loss_by_length(run),
    ]
    return [figure for figure in drawn if figure is not None]


def training_loss(run: RunRecord) -> Figure | None:
    """Loss and plain negative log-likelihood of the training steps, both with dropout."""
    if not any(math.isfinite(step.loss) or math.isfinite(step.nll) for step in run.steps):
        return None
    rows = [
        *_rows("loss, smoothed labels", bucket_steps(run.steps, lambda step: step.loss)),
        *_rows("negative log-likelihood", bucket_steps(run.steps, lambda step: step.nll)),
    ]
    caption = "Per target token, with dropout. Band: lowest and highest step."
    return Figure("training-loss", "Training loss", caption, _curve(rows, "nats per token", band=True))


def dev_loss(run: RunRecord) -> Figure | None:
    """Dev loss and the loss on fixed training pairs, measured alike."""
    rows: list[dict[str, Any]] = []
    for number, dev_set in enumerate(run.dev_sets[:3]):
        evals = run.evals_of(dev_set)
        rows += _eval_rows(dev_set, evals, lambda record: record.loss)
        if number == 0:
            rows += _eval_rows("training pairs", evals, lambda record: record.train_loss)
    if not rows:
        return None
    caption = "Negative log-likelihood without dropout and smoothing on both: these curves may be compared."
    best = best_by_loss(run.evals_of(run.dev_sets[0]))
    mark = _mark(best.step, best.loss, f"{best.loss:.3f}") if best else None
    chart = _curve(rows, "nats per token", mark=mark)
    return Figure("dev-loss", "Dev loss and training loss on one footing", caption, chart)


def translation_scores(run: RunRecord) -> Figure | None:
    """BLEU and chrF of the dev translations."""
    evals = run.evals_of(run.dev_sets[0]) if run.dev_sets else []
    rows = [
        *_eval_rows("BLEU", evals, lambda record: record.bleu),
        *_eval_rows("chrF", evals, lambda record: record.chrf),
    ]
    if not rows:
        return None
    best = best_by_bleu(evals)
    mark = _mark(best.step, best.bleu, f"{best.bleu:.1f}") if best and best.bleu is not None else None
    chart = _curve(rows, "score", mark=mark)
    caption = f"Translations of {evals[-1].num_decoded:,} sentences of {evals[-1].dev_set}, detokenized."
    return Figure("scores", "BLEU and chrF", caption, chart)


def learning_rate(run: RunRecord) -> Figure | None:
    rows = _rows("learning rate", bucket_steps(run.steps, lambda step: step.learning_rate))
    if not rows:
        return None
    peak = max(run.steps, key=lambda step: step.learning_rate)
    caption = f"Highest at step {peak.step:,}: {peak.learning_rate:.2g}."
    chart = _curve(rows, "learning rate", number_format=".1e", zero=True)
    return Figure("learning-rate", "Learning rate", caption, chart)


def gradient_norm(run: RunRecord) -> Figure | None:
    buckets = bucket_steps(run.steps, lambda step: step.gradient_norm)
    rows = _rows("gradient norm", buckets)
    if not rows:
        return None
    lows = [bucket.low for bucket in buckets if bucket.low is not None]
    highs = [bucket.high for bucket in buckets if bucket.high is not None]
    is_log = min(lows) > 0 and max(highs) / min(lows) > 30
    caption = "Global norm, before clipping. Band: lowest and highest step."
    chart = _curve(rows, "norm, logarithmic" if is_log else "norm", band=True, is_log=is_log)
    return Figure("gradient-norm", "Gradient norm", caption, chart)


def tokens_per_second(run: RunRecord) -> Figure | None:
    buckets = bucket_steps(run.steps, _token_rate)
    rows = _rows("target tokens per second", buckets)
    if not rows:
        return None
    caption = "Over all ranks, validation and checkpoints left out. Band: slowest and fastest step."
    chart = _curve(rows, "target tokens/s", band=True, number_format=",.6~g", zero=True)
    return Figure("speed", "Speed", caption, chart)


def step_times(run: RunRecord) -> Figure | None:
    """How the step times are distributed, with their median."""
    bins, num_beyond = histogram(step.step_seconds for step in run.steps)
    if not bins:
        return None
    median = median_step_seconds(run)
    bars = (
        alt.Chart(_data([asdict(entry) for entry in bins]))
        .mark_bar(color=COLOURS["first"], binSpacing=1)
        .encode(
            x=alt.X("start:Q", title="seconds per step", bin=alt.BinParams(binned=True), axis=_axis(".3~g")),
            x2="end:Q",
            y=alt.Y("count:Q", title="steps", axis=_axis(",d", min_step=1)),
        )
    )
    rule = (
        alt.Chart(_data([{"median": median}]))
        .mark_rule(color=COLOURS["second"], strokeWidth=1.5)
        .encode(x=alt.X("median:Q"))
    )
    beyond = f" {num_beyond:,} slower steps lie to the right of the chart." if num_beyond else ""
    caption = f"Line: the median, {median:.3g} s.{beyond}"
    return Figure("step-times", "Step times", caption, _finish(alt.layer(bars, rule)))


def loss_by_length(run: RunRecord) -> Figure | None:
    """Dev loss of the last evaluation by the length of the reference."""
    last = run.evals_of(run.dev_sets[0])[-1] if run.dev_sets else None
    bins = length_bins(run.read_eval_sentences(last.step, last.dev_set)) if last else []
    if last is None or not bins:
        return None
    rows = [{"length": entry.label, "loss": entry.loss} for entry in bins]
    chart = (
        alt.Chart(_data(rows))
        .mark_bar(color=COLOURS["third"], width={"band": 0.9})
        .encode(
            x=alt.X("length:N", sort=None, title="target tokens of the sentence", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("loss:Q", title="nats per token", axis=_axis(",.4~g")),
        )
    )
    caption = f"At step {last.step:,}; each bar stands for about as many sentences of {last.dev_set}."
    return Figure("loss-by-length", "Dev loss by sentence length", caption, _finish(chart))


def time_bar(shares: Sequence[Share], with_legend: bool = True) -> Any:
    """One bar of the whole time. The page brings its own legend; a picture that stands alone needs one."""
    names = [share.name for share in shares]
    rows = [{"part": share.name, "share": share.share, "order": number} for number, share in enumerate(shares)]
    legend = alt.Legend(orient="top", title=None, symbolType="square") if with_legend else None
    chart = (
        alt.Chart(_data(rows))
        .mark_bar(height=34, cornerRadius=2)
        .encode(
            x=alt.X("share:Q", stack="zero", scale=alt.Scale(domain=[0, 1], nice=False), axis=None),
            order=alt.Order("order:Q"),
            color=alt.Color(
                "part:N",
                sort=names,
                legend=legend,
                scale=alt.Scale(domain=names, range=[PART_COLOURS[name] for name in names]),
            ),
        )
    )
    return _finish(chart, width=900, height=90 if with_legend else 40)


def to_svg(chart: Any) -> str:
    stream = io.StringIO()
    chart.save(stream, format="svg")
    return stream.getvalue()


def to_png(chart: Any, scale: float = 2.0) -> bytes:
    stream = io.BytesIO()
    chart.properties(background="white").save(stream, format="png", scale_factor=scale)
    return stream.getvalue()


def _token_rate(step: StepRecord) -> float:
    return step.target_tokens / step.step_seconds if step.step_seconds > 0 else math.nan


def _rows(series: str, buckets: Sequence[Bucket]) -> list[dict[str, Any]]:
    """Nothing at all where no bucket has a value; else gaps stay as gaps."""
    if all(bucket.mean is None for bucket in buckets):
        return []
    return [
        {"series": series, "step": bucket.step, "low": bucket.low, "value": bucket.mean, "high": bucket.high}
        for bucket in buckets
    ]


def _eval_rows(
    series: str, evals: Sequence[EvalRecord], value: Callable[[EvalRecord], float | None]
) -> list[dict[str, Any]]:
    points = [(record.step, value(record)) for record in evals]
    return [
        {"series": series, "step": step, "value": number}
        for step, number in points
        if number is not None and math.isfinite(number)
    ]


def _curve(
    rows: Sequence[dict[str, Any]],
    y_title: str,
    band: bool = False,
    mark: Any = None,
    number_format: str = ",.4~g",
    zero: bool = False,
    is_log: bool = False,
) -> Any:
    names = list(dict.fromkeys(row["series"] for row in rows))
    legend = alt.Legend(orient="top", title=None, symbolType="stroke", symbolOpacity=1) if len(names) > 1 else None
    colour = alt.Color("series:N", legend=legend, scale=alt.Scale(domain=names, range=SERIES[: len(names)]))
    scale = alt.Scale(type="log" if is_log else "linear", zero=zero and not is_log)
    x = alt.X("step:Q", title="step", axis=_axis(",d", min_step=1), scale=alt.Scale(nice=False))
    y = alt.Y("value:Q", title=y_title, axis=_axis(number_format), scale=scale)
    chart = alt.Chart(_data(rows))
    layers: list[Any] = []
    if band and any(row["low"] != row["high"] for row in rows):
        spread = chart.mark_area(opacity=0.18).encode(x=x, y=alt.Y("low:Q", title=y_title, scale=scale), y2="high:Q")
        layers.append(spread.encode(color=colour))
    layers.append(chart.mark_line(strokeWidth=1.7, strokeJoin="round").encode(x=x, y=y, color=colour))
    if len(rows) / len(names) <= MAX_DOTS:
        layers.append(chart.mark_point(filled=True, size=22, opacity=1).encode(x=x, y=y, color=colour))
    if mark is not None:
        layers.append(mark)
    return _finish(alt.layer(*layers))


def _mark(step: int, value: float, label: str) -> Any:
    """A ring and its value at the best evaluation."""
    data = _data([{"step": step, "value": value, "label": label}])
    ring = alt.Chart(data).mark_point(size=90, color=COLOURS["ink"], strokeWidth=1.4, opacity=1)
    text = alt.Chart(data).mark_text(dy=-12, align="right", dx=4, color=COLOURS["ink"], fontWeight=600)
    return alt.layer(ring.encode(x="step:Q", y="value:Q"), text.encode(x="step:Q", y="value:Q", text="label:N"))


def _data(rows: Sequence[dict[str, Any]]) -> Any:
    return alt.Data(values=list(rows))


def _axis(number_format: str, min_step: float = 0) -> Any:
    return alt.Axis(format=number_format, tickCount=5, tickMinStep=min_step)


def _finish(chart: Any, width: int = WIDTH, height: int = HEIGHT) -> Any:
    axis = alt.AxisConfig(
        domain=False,
        ticks=False,
        grid=True,
        gridColor=COLOURS["grid"],
        labelColor=COLOURS["muted"],
        titleColor=COLOURS["muted"],
        titleFontWeight="normal",
        labelPadding=6,
        titlePadding=10,
        labelFontSize=11,
        titleFontSize=11,
    )
    return chart.properties(
        width=width,
        height=height,
        background="transparent",
        padding=2,
        autosize=alt.AutoSizeParams(type="fit", contains="padding"),
    ).configure(
        font=FONT,
        axis=axis,
        axisX=alt.AxisConfig(grid=False),
        view=alt.ViewConfig(stroke=None),
        legend=alt.LegendConfig(
            labelColor=COLOURS["ink"], labelFontSize=11, symbolStrokeWidth=2, columnPadding=14, labelLimit=220
        ),
    )
