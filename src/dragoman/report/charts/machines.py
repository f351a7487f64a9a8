"""Charts of the machines: the link, what its bytes cost, busy against computing, and every host over time."""

from collections.abc import Sequence

import altair as alt
import numpy as np
from altair.utils.schemapi import debug_mode

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.link import step_seconds_at
from dragoman.diagnose.machine_series import HostSeries
from dragoman.diagnose.series import TimingGrid
from dragoman.diagnose.statistics import finite_mean
from dragoman.diagnose.wording import bits_text, rate_text, seconds_text
from dragoman.report.charts.drawing import (
    WIDTH,
    Figure,
    Look,
    Row,
    axis,
    bars,
    bucket_rows,
    curve,
    data,
    finish,
    level,
    time_unit,
)
from dragoman.report.palette import COLOURS, PART_COLOURS
from dragoman.report.series import Floats, buckets_of

MAX_HOSTS = 8
PANEL_HEIGHT, PANEL_BUCKETS = 62, 180
FAR = 2.5  # a line so many times above everything else is told, not drawn


def link(facts: Facts) -> Figure | None:
    """Both directions of the exchange's card over time, under what the link carries and what the card says."""
    if facts.link is None:
        return None
    host = max(facts.hosts, key=lambda item: finite_mean(item.sent_rate) or 0.0, default=None)
    if host is None or not (np.isfinite(host.sent_rate).any() or np.isfinite(host.received_rate).any()):
        return None
    x, unit = _since_start(facts, host.time)
    rows = [
        *bucket_rows("sent", buckets_of(x, host.sent_rate / 1e6)),
        *bucket_rows("received", buckets_of(x, host.received_rate / 1e6)),
    ]
    highest = float(np.nanmax(np.fmax(host.sent_rate, host.received_rate))) / 1e6
    end = float(np.nanmax(x))
    capacity, claimed = facts.link.capacity, facts.link.claimed_bits
    lines: list[tuple[float, str]] = []
    told = ""
    if capacity and facts.link.is_measured:
        lines.append((capacity / 1e6, f"measured before the run: {rate_text(capacity)}"))
        highest = max(highest, capacity / 1e6)
    if claimed and claimed / 8e6 <= FAR * highest:
        lines.append((claimed / 8e6, f"the card says {bits_text(claimed)}"))
    elif claimed:
        told = f" The card says {bits_text(claimed)} ({claimed / 8e6:,.0f} MB/s), far above this chart."
    top = 1.12 * max([highest, *(value for value, _ in lines)])
    look = Look("MB/s", x_title=f"{unit} since the start", x_format=",.4~g", from_zero=True, top=top, has_band=True)
    chart = curve(rows, look, *(level(end, value, label) for value, label in lines))
    card = f"{host.card} of {host.host}" if host.card else host.host
    caption = f"{card}, once a second, each direction. Band: slowest and fastest second.{told}"
    return Figure("link", "What the link carried", caption, chart)


def traffic(facts: Facts) -> Figure | None:
    """The step as measured, its floor, and what a faster link would make of it."""
    link, split = facts.link, facts.split
    step = split.step_seconds if split else facts.mean_step_seconds
    if link is None or not step or link.floor_seconds is None:
        return None
    entries = [
        ("floor: bytes over capacity", link.floor_seconds, PART_COLOURS["transfer"]),
        ("step as measured", step, COLOURS["first"]),
    ]
    if split is not None:
        entries += [
            (f"step on a link {factor} times as fast", step_seconds_at(link, split, factor), COLOURS["faint"])
            for factor in (2, 10)
        ]
    rows: list[Row] = [
        {"name": name, "value": value, "colour": colour, "label": seconds_text(value)}
        for name, value, colour in entries
    ]
    caption = "The bytes of a step need at least the floor. Grey: predicted."
    return Figure("traffic", "A step against its bytes", caption, bars(rows))


def use(facts: Facts) -> Figure | None:
    """Busy as the driver counts it, against the share of each step that computed."""
    is_gpu = any(np.isfinite(host.gpu_busy).any() for host in facts.hosts)
    kind = "GPUs busy" if is_gpu else "cores busy"
    start = _start(facts)
    moments: list[Row] = []
    spans = [_last(host.time) - start for host in facts.hosts]
    grid = facts.grid
    if grid is not None:
        spans.append(_last(np.nanmax(grid.time, axis=1)) - start)
    seconds, unit = time_unit(max(spans, default=0.0))
    if facts.hosts:
        values = [host.gpu_busy if is_gpu else host.cpu_busy for host in facts.hosts]
        times = np.concatenate([host.time for host in facts.hosts])
        order = np.argsort(times, kind="stable")
        moments += bucket_rows(kind, buckets_of(((times - start) / seconds)[order], np.concatenate(values)[order]))
    if grid is not None:
        x, share = _computing(grid)
        moments += bucket_rows("share of a step computing", buckets_of((x - start) / seconds, share))
    if not moments:
        return None
    look = Look(
        "share", x_title=f"{unit} since the start", x_format=",.4~g", number_format=".0%", from_zero=True, top=1
    )
    whose = "driver" if is_gpu else "system"
    caption = f"Busy as the {whose} counts it, waiting included; computing from the timing of the steps."
    return Figure("gpu", "Busy, and computing", caption, curve(moments, look))


def _computing(grid: TimingGrid) -> tuple[Floats, Floats]:
    """(moment, share) of every step: forward, backward and optimizer over the step, mean of the ranks."""
    parts = sum((np.nan_to_num(grid.parts[name]) for name in ("forward", "backward", "optimizer")), np.zeros(()))
    whole = np.nansum(grid.step_seconds, axis=1)
    share = np.where(whole > 0, np.sum(parts, axis=1) / np.maximum(whole, 1e-12), np.nan)
    moments = np.fmax.reduce(grid.time, axis=1)
    order = np.argsort(moments, kind="stable")
    return moments[order], np.minimum(share, 1.0)[order]


def host_panels(facts: Facts) -> list[Figure]:
    """One small picture per host: processors, GPUs and network over time, one below the other."""
    with debug_mode(False):
        return [figure for host in facts.hosts[:MAX_HOSTS] if (figure := _panels(facts, host)) is not None]


def _panels(facts: Facts, host: HostSeries) -> Figure | None:
    x, unit = _since_start(facts, host.time)
    shares = Look("", number_format=".0%", from_zero=True, top=1)
    rates = Look("", number_format=",.3~g", from_zero=True)
    network = [("sent", host.sent_rate / 1e6), ("received", host.received_rate / 1e6)]
    wanted: list[tuple[str, Look, Sequence[tuple[str, Floats]]]] = [
        ("cores busy", shares, [("busy", host.cpu_busy)]),
        ("GPUs busy", shares, [("busy", host.gpu_busy)]),
        (f"{host.card or 'network'}, MB/s", rates, network),
    ]
    drawn = [(title, look, series) for title, look, series in wanted if any(np.isfinite(v).any() for _, v in series)]
    if not drawn:
        return None
    panels = [
        _panel(x, unit, title, look, series, is_last=number == len(drawn))
        for number, (title, look, series) in enumerate(drawn, start=1)
    ]
    caption = "Once a second. Blue: busy, or sent; orange: received."
    return Figure(
        f"host-{host.host}",
        host.host,
        caption,
        finish(alt.vconcat(*panels, spacing=14).resolve_scale(color="independent")),
    )


def _panel(
    x: Floats, unit: str, title: str, look: Look, series: Sequence[tuple[str, Floats]], is_last: bool
) -> alt.Chart:
    rows = [row for name, values in series for row in bucket_rows(name, buckets_of(x, values, PANEL_BUCKETS))]
    names = [name for name, _ in series]
    colours = [COLOURS["first"], COLOURS["second"]][: len(names)]
    x_axis = axis(",.4~g") if is_last else alt.Axis(labels=False, title=None)
    scale = alt.Scale(zero=True, domainMax=look.top if look.top is not None else alt.Undefined)
    return (
        alt.Chart(data(rows))
        .mark_line(strokeWidth=1.4, strokeJoin="round")
        .encode(
            x=alt.X(
                "x:Q", title=f"{unit} since the start" if is_last else None, axis=x_axis, scale=alt.Scale(nice=False)
            ),
            y=alt.Y("value:Q", title=None, axis=axis(look.number_format, num_ticks=2), scale=scale),
            color=alt.Color("series:N", legend=None, scale=alt.Scale(domain=names, range=colours)),
        )
        .properties(
            width=WIDTH - 60,
            height=PANEL_HEIGHT,
            title=alt.TitleParams(
                title, anchor="start", frame="group", fontSize=12, fontWeight="normal", color=COLOURS["muted"], offset=5
            ),
        )
    )


def _since_start(facts: Facts, times: Floats) -> tuple[Floats, str]:
    start = _start(facts)
    seconds, unit = time_unit(_last(times) - start)
    return (times - start) / seconds, unit


def _start(facts: Facts) -> float:
    firsts = [span.start for span in facts.spans[:1]] + [float(host.time[0]) for host in facts.hosts if len(host.time)]
    return min(firsts, default=0.0)


def _last(times: Floats) -> float:
    finite = times[np.isfinite(times)]
    return float(finite.max()) if len(finite) else 0.0
