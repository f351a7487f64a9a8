"""The live numbers and curves of a run in words and points, for a page or a terminal to show. Knows no HTML."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.run.records import WRONG_NUMBERS
from dragoman.units import format_bit_rate, format_bytes, format_count, format_seconds
from dragoman.web.watch.curve import Curve, Point
from dragoman.web.watch.host_now import HostNow
from dragoman.web.watch.live import LiveRun
from dragoman.web.watch.pace import elapsed_seconds, left_seconds, max_steps, tokens_per_second
from dragoman.web.watch.state import ENDED, Kind

MAX_HOSTS_DRAWN = 4
NONE_YET = "–"
TRAP = "one that waits for other hosts reads busy too"


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with its unit, and a line of context."""

    key: str
    label: str
    value: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    points: list[Point]


@dataclass(frozen=True, slots=True)
class Chart:
    """`kind` says how the axis counts: plain, seconds, bytes or share. `mark` is a line across, such as a promise."""

    key: str
    title: str
    caption: str
    x: str  # steps or seconds
    kind: str
    series: list[Series]
    mark: float | None = None
    mark_name: str = ""


def tiles(live: LiveRun, kind: Kind) -> list[Tile]:
    found = [_loss(live), _step_time(live), _tokens(live), _time(live, kind), _dev(live)]
    when = "at the end" if kind in ENDED else "now"
    found += [_link(live, when)] if len(live.hosts) > 1 else []
    return [*found, _processors(live, when)]


def charts(live: LiveRun) -> list[Chart]:
    link = link_bytes_per_second(live)
    promised = live.prediction.step.total_seconds if live.prediction else None
    drawn = [
        _chart("live-loss", "Training loss", "per target token, with dropout", "plain", live.loss),
        _chart("live-step", "Time of a step", "s/step, without evaluating and saving", "seconds", live.step_seconds),
    ]
    drawn[1] = _with_mark(drawn[1], promised, f"predicted {promised:.3g} s" if promised else "")
    hosts = list(live.hosts.values())[:MAX_HOSTS_DRAWN]
    rest = f", {len(hosts)} of {len(live.hosts)} hosts" if len(hosts) < len(live.hosts) else ""
    if len(live.hosts) > 1:
        sent = [Series(host.name, host.sent.points()) for host in hosts]
        chart = Chart(
            "live-link", "Sent over the link", f"bytes a second, out of each host{rest}", "seconds", "bytes", sent
        )
        mark = f"measured: {format_bytes(link)}/s ({format_bit_rate(link * 8)})" if link else ""
        drawn.append(_with_mark(chart, link, mark))
    elif hosts:
        busy = [Series(host.name, host.busy.points()) for host in hosts]
        what = "GPUs, share of the time" if hosts[0].gpu_busy is not None else "processor cores, share of the time"
        drawn.append(Chart("live-busy", "Busy", what, "seconds", "share", busy))
    return drawn


def link_bytes_per_second(live: LiveRun) -> float | None:
    """What `train` measured out of the slowest host before its first step."""
    link = live.profile.link if live.profile else None
    return link.bytes_per_second if link and link.bytes_per_second > 0 else None


def findings(live: LiveRun) -> list[tuple[str, str, int]]:
    """(code, text, step), newest first; each code once. Numbers that went wrong have their event's kind as code."""
    found: dict[str, tuple[str, str, int]] = {}
    for event in reversed(live.events):
        if event.kind in ("finding", *WRONG_NUMBERS):
            code = str(event.detail.get("code", event.kind))
            found.setdefault(code, (code, str(event.detail.get("text", "")), event.step))
    return list(found.values())


def busiest(hosts: Sequence[HostNow]) -> HostNow | None:
    return max(hosts, key=lambda host: host.sent_bytes_per_second or 0.0, default=None)


def percent(share: float | None) -> str:
    return f"{share:.0%}".replace("%", " %") if share is not None else NONE_YET


def _chart(key: str, title: str, caption: str, kind: str, curve: Curve) -> Chart:
    return Chart(key, title, caption, "steps", kind, [Series(title, curve.points())])


def _with_mark(chart: Chart, mark: float | None, name: str) -> Chart:
    return Chart(chart.key, chart.title, chart.caption, chart.x, chart.kind, chart.series, mark, name)


def _loss(live: LiveRun) -> Tile:
    if live.last is None:
        return Tile("loss", "Training loss", NONE_YET, "no step yet")
    finite = [step.loss for step in live.recent if math.isfinite(step.loss)]
    mean = f"{sum(finite) / len(finite):.3f}" if finite else "none"
    value = f"{live.last.loss:.3f}" if math.isfinite(live.last.loss) else "not a number"
    return Tile("loss", "Training loss", value, f"nats per token; mean of the last {len(live.recent)}: {mean}")


def _step_time(live: LiveRun) -> Tile:
    pace = live.recent_step_seconds
    if pace is None:
        return Tile("step-time", "Time of a step", NONE_YET)
    per_second = f"{1 / pace:.3g} steps/s" if pace > 0 else NONE_YET
    return Tile(
        "step-time", "Time of a step", f"{pace:.3g} s/step", f"{per_second}, median of the last {len(live.recent)}"
    )


def _tokens(live: LiveRun) -> Tile:
    rate, last = tokens_per_second(live), live.last
    if rate is None or last is None:
        return Tile("tokens", "Target tokens/s", NONE_YET)
    return Tile("tokens", "Target tokens/s", format_count(rate), f"{format_count(last.target_tokens)} tokens a step")


def _time(live: LiveRun, kind: Kind) -> Tile:
    elapsed, left = elapsed_seconds(live), left_seconds(live)
    since = f"{format_seconds(elapsed)} since its first step" if elapsed is not None else ""
    if kind in ENDED:
        label, value = "Took", format_seconds(elapsed) if elapsed is not None else NONE_YET
        resumed = f", attempt {live.attempt}" if live.attempt > 1 else ""
        return Tile("left", label, value, f"from the first step to the last{resumed}")
    limit = live.setting("train", "max_minutes")
    at_most = (
        f"; ends after {format_seconds(limit * 60)} at the latest" if isinstance(limit, int | float) and limit else ""
    )
    value = format_seconds(left) if left is not None else NONE_YET
    return Tile("left", "Time left", value, f"{since}{at_most}")


def _dev(live: LiveRun) -> Tile:
    if not live.evals:
        every = live.setting("evaluate", "every_steps")
        return Tile("dev", "Dev loss", NONE_YET, f"evaluated every {every:,} steps" if isinstance(every, int) else "")
    last = live.evals[-1]
    bleu = f"BLEU {last.bleu:.1f}, " if last.bleu is not None else ""
    best = min((item for item in live.evals if math.isfinite(item.loss)), key=lambda item: item.loss, default=None)
    best_words = f"; best {best.loss:.3f} at step {best.step:,}" if best is not None and best.step != last.step else ""
    value = f"{last.loss:.3f}" if math.isfinite(last.loss) else "not a number"
    return Tile("dev", "Dev loss", value, f"{bleu}step {last.step:,}{best_words}")


def _link(live: LiveRun, when: str) -> Tile:
    host, capacity = busiest(list(live.hosts.values())), link_bytes_per_second(live)
    rate = host.sent_bytes_per_second if host else None
    if host is None or rate is None:
        return Tile("link", "Link", NONE_YET)
    of = f", {percent(rate / capacity)} of the measured {format_bytes(capacity)}/s" if capacity else ""
    return Tile(
        "link", f"Link, {when}", f"{format_bytes(rate)}/s", f"{format_bit_rate(rate * 8)} out of {host.name}{of}"
    )


def _processors(live: LiveRun, when: str) -> Tile:
    hosts = list(live.hosts.values())
    gpus = [host.gpu_busy for host in hosts if host.gpu_busy is not None]
    cores = [host.cpu_busy for host in hosts if host.cpu_busy is not None]
    cpu = sum(cores) / len(cores) if cores else None
    if gpus:
        return Tile("busy", f"GPUs busy, {when}", percent(sum(gpus) / len(gpus)), f"{TRAP}; CPU {percent(cpu)}")
    where = "mean of all hosts" if len(hosts) > 1 else "all cores"
    return Tile("busy", f"CPU busy, {when}", percent(cpu), where if cores else "no sample yet")


def step_line(live: LiveRun) -> str:
    """'Step 1,200 of 50,000'."""
    planned = max_steps(live)
    if live.last is None:
        return f"No step yet of {planned:,}" if planned else "No step yet"
    return f"Step {live.last.step:,}" + (f" of {planned:,}" if planned else "")
