"""Charts of time: what a run spent its hours on, and how long its steps took."""

from collections.abc import Sequence

import altair as alt
import numpy as np

from dragoman.diagnose.answers.duration import account_of
from dragoman.diagnose.facts import Facts
from dragoman.diagnose.wording import percent, seconds_text
from dragoman.report.charts.drawing import Figure, Look, Row, axis, bars, bucket_rows, curve, data, finish
from dragoman.report.palette import COLOURS, PART_COLOURS
from dragoman.report.series import Share, buckets_of, histogram


def duration(facts: Facts) -> Figure | None:
    """The whole duration in five bars: the first thing to see is how much of it was training."""
    account = account_of(facts)
    if account.duration <= 0 or not facts.num_steps:
        return None
    parts = [
        ("training steps", account.steps, COLOURS["first"]),
        ("validation", account.validation, PART_COLOURS["validation"]),
        ("checkpoints", account.checkpoints, PART_COLOURS["checkpoint"]),
        ("start", account.start, PART_COLOURS["other"]),
        ("done twice", account.lost, PART_COLOURS["transfer"]),
        ("in no record", account.rest if account.rest > 0.005 * account.duration else 0.0, COLOURS["faint"]),
    ]
    rows: list[Row] = [
        {"name": name, "value": spent, "colour": colour, "label": _with_share(spent, account.duration)}
        for name, spent, colour in parts
        if spent > 0
    ]
    if not rows:
        return None
    caption = "Working time of all attempts together, without the gaps between them."
    return Figure("time-bar", "What the run spent its time on", caption, bars(rows))


def speed(facts: Facts) -> Figure | None:
    steps = facts.steps
    seconds = np.where(steps.seconds > 0, steps.seconds, np.nan)
    rows = bucket_rows("target tokens/s", buckets_of(steps.step.astype(np.float64), steps.target_tokens / seconds))
    if not rows:
        return None
    caption = "Over all ranks, validation and checkpoints left out. Band: slowest and fastest step."
    look = Look("target tokens/s", has_band=True, number_format=",.6~g", from_zero=True)
    return Figure("speed", "Speed", caption, curve(rows, look))


def step_times(facts: Facts) -> Figure | None:
    """How the step times are distributed, with their median."""
    seconds = facts.steps.seconds[np.isfinite(facts.steps.seconds)]
    bins, num_beyond = histogram(seconds)
    if not bins:
        return None
    median = float(np.median(seconds))
    rows: list[Row] = [{"start": entry.start, "end": entry.end, "count": entry.count} for entry in bins]
    columns = (
        alt.Chart(data(rows))
        .mark_bar(color=COLOURS["first"], binSpacing=1)
        .encode(
            x=alt.X("start:Q", title="seconds per step", bin=alt.BinParams(binned=True), axis=axis(".3~g")),
            x2="end:Q",
            y=alt.Y("count:Q", title="steps", axis=axis(",d", min_step=1)),
        )
    )
    rule = (
        alt.Chart(data([{"median": median}]))
        .mark_rule(color=COLOURS["second"], strokeWidth=1.8)
        .encode(x=alt.X("median:Q"))
    )
    beyond = f" {num_beyond:,} slower steps lie to the right of the chart." if num_beyond else ""
    caption = f"Line: the median, {median:.3g} s.{beyond}"
    return Figure("step-times", "How long the steps took", caption, finish(alt.layer(columns, rule)))


def time_bar(shares: Sequence[Share], with_legend: bool = True) -> alt.Chart:
    """One bar of the whole time. The page brings its own legend; a picture that stands alone needs one."""
    names = [share.name for share in shares]
    rows: list[Row] = [{"part": share.name, "share": share.share, "order": i} for i, share in enumerate(shares)]
    legend = alt.Legend(orient="top", title=None, symbolType="square", columns=5) if with_legend else None
    chart = (
        alt.Chart(data(rows))
        .mark_bar(height=38)
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
    return finish(chart, width=1000, height=110 if with_legend else 42)


def _with_share(seconds: float, whole: float) -> str:
    return f"{seconds_text(seconds)}, {percent(seconds / whole)}"
