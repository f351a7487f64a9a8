"""How every picture is drawn: axes, lines, bars, fonts, SVG and PNG. Knows numbers and colours, no run.

Built without Altair's checks, which take half of the time; a test makes every chart with them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import vl_convert

from dragoman.report.palette import COLOURS, SERIES
from dragoman.report.series import Bucket

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
WIDTH, HEIGHT = 440, 230
LABEL_WIDTH = 7.5  # of a letter, bold
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
# Few points are drawn as points too: a line through one of them is nothing to see.
MAX_DOTS = 40
Row = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A chart with the words that go around it."""

    key: str
    title: str
    caption: str
    chart: Any


@dataclass(frozen=True)
class Look:
    """What differs between curves."""

    y_title: str
    x_title: str = "step"
    number_format: str = ",.4~g"
    x_format: str = ",d"
    has_band: bool = False
    from_zero: bool = False
    is_log: bool = False
    top: float | None = None  # of the y axis
    height: int = HEIGHT


def bucket_rows(series: str, buckets: Sequence[Bucket]) -> list[Row]:
    """Nothing at all where no bucket has a value; else gaps stay as gaps."""
    if all(bucket.mean is None for bucket in buckets):
        return []
    return [
        {"series": series, "x": bucket.x, "low": bucket.low, "value": bucket.mean, "high": bucket.high}
        for bucket in buckets
    ]


def curve(rows: Sequence[Row], look: Look, *extras: Any) -> Any:
    """Lines over x, one a series, with bands and dots where they help."""
    names = list(dict.fromkeys(row["series"] for row in rows))
    colour = _series_colour(names)
    scale = alt.Scale(
        type="log" if look.is_log else "linear",
        zero=look.from_zero and not look.is_log,
        domainMax=look.top if look.top is not None else alt.Undefined,
    )
    min_step = 1 if look.x_format == ",d" else 0
    x = alt.X("x:Q", title=look.x_title, axis=axis(look.x_format, min_step), scale=alt.Scale(nice=False))
    y = alt.Y("value:Q", title=look.y_title, axis=axis(look.number_format), scale=scale)
    chart = alt.Chart(data(rows))
    layers: list[Any] = []
    if look.has_band and any(row.get("low") != row.get("high") for row in rows):
        low = alt.Y("low:Q", title=look.y_title, scale=scale)
        layers.append(chart.mark_area(opacity=0.18).encode(x=x, y=low, y2="high:Q", color=colour))
    layers.append(chart.mark_line(strokeWidth=1.8, strokeJoin="round").encode(x=x, y=y, color=colour))
    if len(rows) / max(len(names), 1) <= MAX_DOTS:
        layers.append(chart.mark_point(filled=True, size=24, opacity=1).encode(x=x, y=y, color=colour))
    return finish(alt.layer(*layers, *extras), height=look.height)


def _series_colour(names: Sequence[str]) -> Any:
    legend = None
    if len(names) > 1:
        legend = alt.Legend(orient="top", title=None, symbolType="stroke", symbolOpacity=1)
    return alt.Color("series:N", legend=legend, scale=alt.Scale(domain=list(names), range=SERIES[: len(names)]))


def ring(x: float, value: float, label: str) -> Any:
    """A ring and its value, at the best evaluation."""
    point = data([{"x": x, "value": value, "label": label}])
    mark = alt.Chart(point).mark_point(size=90, color=COLOURS["ink"], strokeWidth=1.4, opacity=1)
    text = alt.Chart(point).mark_text(dy=-13, align="right", dx=4, color=COLOURS["ink"], fontWeight=600, fontSize=12)
    return alt.layer(mark.encode(x="x:Q", y="value:Q"), text.encode(x="x:Q", y="value:Q", text="label:N"))


def level(x: float, value: float, label: str) -> Any:
    """A dashed line across, with its name above its right end."""
    point = data([{"x": x, "value": value, "label": label}])
    rule = alt.Chart(point).mark_rule(color=COLOURS["ink"], strokeDash=[5, 4], strokeWidth=1.2)
    text = alt.Chart(point).mark_text(align="right", dy=-7, color=COLOURS["ink"], fontSize=11.5)
    return alt.layer(rule.encode(y="value:Q"), text.encode(x="x:Q", y="value:Q", text="label:N"))


def bars(rows: Sequence[Row], bar_height: int = 22) -> Any:
    """Horizontal bars: `name`, `value`, `label`, `colour`. The name stands above its bar, the label behind it."""
    order = [row["name"] for row in rows]
    highest = max((row["value"] for row in rows), default=0.0) or 1.0
    chart = alt.Chart(data(rows))
    # Room on the right for the longest label, as if it stood behind the longest bar.
    room = LABEL_WIDTH * max((len(row["label"]) for row in rows), default=0) + 16
    full = highest * WIDTH / max(WIDTH - room, WIDTH / 3)
    x = alt.X("value:Q", axis=None, stack=None, scale=alt.Scale(domain=[0, full], nice=False))
    y = alt.Y("name:N", sort=order, axis=None, scale=alt.Scale(paddingInner=0.0, paddingOuter=0.0))
    bar = chart.mark_bar(height=bar_height - 8, cornerRadius=2, yOffset=7).encode(
        x=x, y=y, color=alt.Color("colour:N", scale=None)
    )
    name = chart.mark_text(align="left", baseline="middle", dy=-9, color=COLOURS["muted"], fontSize=12).encode(
        x=alt.value(0), y=y, text="name:N"
    )
    label = chart.mark_text(
        align="left", baseline="middle", dx=7, dy=7, color=COLOURS["ink"], fontSize=12, fontWeight=600
    ).encode(x=x, y=y, text="label:N")
    return finish(alt.layer(bar, name, label), height=max(1, len(rows)) * (bar_height + 20))


def data(rows: Sequence[Row]) -> Any:
    return alt.Data(values=list(rows))


def axis(number_format: str, min_step: float = 0, num_ticks: int = 5) -> Any:
    return alt.Axis(format=number_format, tickCount=num_ticks, tickMinStep=min_step)


def finish(chart: Any, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """Size, fonts and colours; once for the whole of a chart."""
    look = alt.AxisConfig(
        domain=False,
        ticks=False,
        grid=True,
        gridColor=COLOURS["grid"],
        labelColor=COLOURS["muted"],
        titleColor=COLOURS["muted"],
        titleFontWeight="normal",
        labelPadding=6,
        titlePadding=10,
        labelFontSize=11.5,
        titleFontSize=11.5,
    )
    sized = chart
    if not isinstance(chart, alt.VConcatChart):
        fit = alt.AutoSizeParams(type="fit", contains="padding")
        sized = chart.properties(width=width, height=height, autosize=fit)
    return sized.properties(background="transparent", padding=2).configure(
        font=FONT,
        axis=look,
        axisX=alt.AxisConfig(grid=False),
        view=alt.ViewConfig(stroke=None),
        legend=alt.LegendConfig(
            labelColor=COLOURS["ink"], labelFontSize=12, symbolStrokeWidth=2.2, columnPadding=14, labelLimit=240
        ),
    )


def to_svg(chart: Any) -> str:
    return vl_convert.vegalite_to_svg(_definition(chart), vl_version=VEGA_LITE)


def to_png(chart: Any, scale: float = 2.0) -> bytes:
    definition = {**_definition(chart), "background": "white", "padding": 12}
    return vl_convert.vegalite_to_png(definition, vl_version=VEGA_LITE, scale=scale)


def _definition(chart: Any) -> dict[str, Any]:
    return chart.to_dict(validate=False)


def time_unit(seconds: float) -> tuple[float, str]:
    """(seconds in it, name) of the unit in which so long a time is read."""
    if seconds < 180:
        return 1.0, "seconds"
    return (60.0, "minutes") if seconds < 3 * 3600 else (3600.0, "hours")


def is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
