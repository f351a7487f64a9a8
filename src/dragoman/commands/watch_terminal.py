"""A run live in a terminal: headline numbers, loss, where the time goes, hosts, findings; plain lines elsewhere."""

import json
import sys
import time

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dragoman.units import format_bytes
from dragoman.web.watch.curve import Point
from dragoman.web.watch.figures import findings, percent, step_line, tiles
from dragoman.web.watch.live import LiveRun
from dragoman.web.watch.pace import done_share, left_seconds, recent_parts
from dragoman.web.watch.place import Place
from dragoman.web.watch.state import ENDED, State, state_of

LOOK_SECONDS, LINE_SECONDS = 1.5, 10.0
BARS = "▁▂▃▄▅▆▇█"
NUM_FINDINGS = 5
COLOURS = {"running": "green", "finished": "blue", "starting": "blue", "crashed": "red", "gone": "red"}
PART_COLOURS = {"forward": "blue", "backward": "bright_blue", "optimizer": "cyan", "exchange": "red", "data": "yellow"}


def follow(place: Place) -> None:
    """Until the run ends or Ctrl-C."""
    live = LiveRun(place.folder)
    try:
        if sys.stdout.isatty():
            _follow_on_screen(place, live)
        else:
            _follow_in_lines(place, live)
    except KeyboardInterrupt:
        pass  # the usual end
    finally:
        place.close()


def print_once(place: Place, as_json: bool) -> None:
    live = LiveRun(place.folder)
    try:
        state = _look(place, live)
    finally:
        place.close()
    if as_json:
        typer.echo(json.dumps(values(live, state), indent=2))
        return
    typer.echo(line(live, state))
    for tile in tiles(live, state.kind):
        typer.echo(f"  {tile.label}: {tile.value}" + (f" ({tile.detail})" if tile.detail else ""))
    for code, text, step in findings(live):
        typer.echo(f"  finding {code}, since step {step:,}: {text}")


def values(live: LiveRun, state: State) -> dict[str, object]:
    """What a script would want, with units in the names; None where nothing is known."""
    last, best = live.last, live.evals[-1] if live.evals else None
    return {
        "state": state.kind,
        "sentence": state.sentence,
        "attempt": live.attempt,
        "step": last.step if last else None,
        "max_steps": live.setting("train", "max_steps"),
        "loss": _finite(last.loss) if last else None,
        "step_seconds": live.recent_step_seconds,
        "left_seconds": left_seconds(live) if state.kind not in ENDED else 0.0,
        "dev_loss": _finite(best.loss) if best else None,
        "bleu": best.bleu if best else None,
        "findings": [code for code, _, _ in findings(live)],
    }


def line(live: LiveRun, state: State) -> str:
    """All of it in one line, for a log."""
    found = {tile.key: tile for tile in tiles(live, state.kind)}
    parts = [state.word.lower(), step_line(live).lower()]
    if live.last is not None:
        parts.append(f"loss {found['loss'].value}, {found['step-time'].value}")
        parts.append(f"{found['left'].label.lower()} {found['left'].value}")
    if live.evals:
        parts.append(f"dev loss {found['dev'].value}")
    return ", ".join(parts) + (f": {state.sentence}" if state.sentence else "")


def sparkline(points: list[Point], width: int) -> str:
    """Means of neighbouring points as bars, lowest to highest."""
    means = [point[2] for point in points]
    if not means or width < 1:
        return ""
    size = max(1, -(-len(means) // width))
    groups = [means[start : start + size] for start in range(0, len(means), size)]
    heights = [sum(group) / len(group) for group in groups]
    low, high = min(heights), max(heights)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((height - low) * scale)] for height in heights)


def screen(live: LiveRun, state: State, name: str, width: int) -> RenderableType:
    """Everything that fits on one screen."""
    colour = COLOURS.get(state.kind, "yellow")
    head = Text.assemble((f"● {state.word}", f"bold {colour}"), f"  {live.manifest.name if live.manifest else name}  ")
    head.append(step_line(live), "bold")
    parts: list[RenderableType] = [head]
    share = done_share(live)
    if share is not None:
        done = round(share * width)
        parts.append(Text.assemble(("━" * done, colour), ("━" * (width - done), "bright_black")))
    parts += [Text(state.sentence)] if state.sentence else []
    parts += [_numbers(live, state), *_loss(live, width), *_time_bar(live, width), *_hosts(live)]
    for code, text, step in findings(live)[:NUM_FINDINGS]:
        parts.append(Text.assemble(("! ", "bold yellow"), text, (f"  {code}, since step {step:,}", "bright_black")))
    return Group(*parts)


def _follow_on_screen(place: Place, live: LiveRun) -> None:
    console = Console()
    with Live(console=console, auto_refresh=False, screen=False) as view:
        while True:
            state = _look(place, live)
            view.update(screen(live, state, place.name, min(console.width, 110)), refresh=True)
            if state.kind in ENDED:
                return
            time.sleep(LOOK_SECONDS)


def _follow_in_lines(place: Place, live: LiveRun) -> None:
    printed = ""
    while True:
        state = _look(place, live)
        text = line(live, state)
        if text != printed:
            typer.echo(text)
            sys.stdout.flush()
            printed = text
        if state.kind in ENDED:
            return
        time.sleep(LINE_SECONDS)


def _look(place: Place, live: LiveRun) -> State:
    vitals = place.look()
    live.refresh()
    return state_of(live, vitals)


def _numbers(live: LiveRun, state: State) -> Table:
    table = Table.grid(padding=(0, 2))
    for tile in tiles(live, state.kind):
        table.add_row(Text(tile.label, "bright_black"), Text(tile.value, "bold"), Text(tile.detail, "bright_black"))
    return table


def _loss(live: LiveRun, width: int) -> list[RenderableType]:
    points = live.loss.points()
    if len(points) < 2:
        return []
    return [Text.assemble(("loss ", "bright_black"), (sparkline(points, width - 5), "blue"))]


def _time_bar(live: LiveRun, width: int) -> list[RenderableType]:
    parts = recent_parts(live)
    if not parts:
        return []
    bar, names = Text(), Text()
    for name, share in parts:
        colour = PART_COLOURS.get(name, "green")
        bar.append("█" * round(share * width), colour)
        names.append("■ ", colour)
        names.append(f"{name} {percent(share)}  ")
    return [bar, names]


def _hosts(live: LiveRun) -> list[RenderableType]:
    if not live.hosts:
        return []
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bright_black")
    for column in ("host", "CPU", "GPUs", "memory", "out", "in"):
        table.add_column(column, justify="left" if column == "host" else "right")
    for host in live.hosts.values():
        used = host.sample.memory_used_bytes if host.sample else None
        rates = (host.sent_bytes_per_second, host.received_bytes_per_second)
        table.add_row(
            escape(host.name),
            percent(host.cpu_busy),
            percent(host.gpu_busy),
            format_bytes(used) if used is not None else "–",
            *(f"{format_bytes(rate)}/s" if rate is not None else "–" for rate in rates),
        )
    return [table]


def _finite(value: float) -> float | None:
    return value if value - value == 0 else None
