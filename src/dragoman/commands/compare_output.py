"""What `dragoman compare` shows: the sentences first, then short tables with a column for each run; CSV and JSON."""

import csv
import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dragoman.diagnose.comparison.compare import RunComparison
from dragoman.diagnose.comparison.figures import STEP, Figure
from dragoman.diagnose.comparison.paired import Paired
from dragoman.diagnose.wording import percent, rate_text, seconds_text
from dragoman.errors import DragomanError
from dragoman.run.folder import replaced_file
from dragoman.units import format_bytes, format_count, format_money, format_seconds, format_step_time

NARROWEST = 100  # a pipe has no width of its own
UNKNOWN = "-"
STEP_TIME, STEP_RATE, SHARE = "step time", "steps per second", ", share"
SENTENCES_ONLY = (
    "Intervals hold 95 % of the resamples of the dev sentences; what another seed would change is not in them."
)
BETWEEN = "~ read on the line between two evaluations"


def print_comparison(comparison: RunComparison) -> None:
    """Sentences, what limits them, tables."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, NARROWEST + 14 * max(0, len(comparison.names) - 2)))

    def say(text: str = "", style: str = "") -> None:
        console.print(text, style=style or None, markup=False, highlight=False)

    for verdict in comparison.verdicts:
        say(verdict.explanation, style="bold")
        say(verdict.quality)
        say()
    for note in comparison.notes:
        say(f"note: {note}", style="yellow")
    if comparison.notes:
        say()
    for title, table, footing in _tables(comparison):
        say(title, style="bold")
        console.print(table)
        if footing:
            say(footing, style="dim")
        say()


def to_json(comparison: RunComparison) -> str:
    return json.dumps(dataclasses.asdict(comparison), ensure_ascii=False, indent=2)


def write_csv(path: Path, comparison: RunComparison) -> None:
    """Figures as they were computed, units in the names of the rows; then the settings that differ."""
    try:
        with replaced_file(path) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["figure", *comparison.names])
            for figure in comparison.figures:
                cells = ["" if value is None else repr(value) for value in figure.values]
                writer.writerow([f"{_csv_name(figure)} [{figure.unit}]", *cells])
            for row in comparison.settings:
                writer.writerow([f"setting {row.key}", *row.values])
    except OSError as error:
        raise DragomanError(f"cannot write {path}: {error.strerror}", "name a file in a folder that exists") from None


def _csv_name(figure: Figure) -> str:
    """Names repeat between a step and a thousand tokens only."""
    return (
        figure.name
        if figure.group == STEP or not figure.unit.startswith("s/1000")
        else f"{figure.group}: {figure.name}"
    )


def _tables(comparison: RunComparison) -> list[tuple[str, Table, str]]:
    settings = _table("setting", comparison.names)
    for row in comparison.settings:
        settings.add_row(row.key, *row.values)
    found = [("Settings that differ", settings, "")] if comparison.settings else []
    for group in dict.fromkeys(figure.group for figure in comparison.figures):
        figures = [figure for figure in comparison.figures if figure.group == group]
        title = f"{group}, as its fastest rank sees it" if group == STEP else group
        is_between = any(any(figure.is_between) for figure in figures)
        found.append((title, _figure_table(figures, comparison), BETWEEN if is_between else ""))
    if comparison.paired:
        title = f"The same {comparison.paired[0].num_sentences:,} dev sentences, paired with {comparison.names[0]}'s"
        found.append((title, _paired_table(comparison.paired, comparison.names), SENTENCES_ONLY))
    return found


def _figure_table(figures: Sequence[Figure], comparison: RunComparison) -> Table:
    by_name = {figure.name: figure for figure in figures}
    table = _table("", comparison.names)
    for figure in figures:
        if figure.name == STEP_RATE or figure.name.endswith(SHARE):
            continue  # shown in the row before
        cells = [_cell(figure, number, comparison.currency) for number in range(len(figure.values))]
        shares = by_name.get(f"{figure.name}{SHARE}")
        if shares is not None:
            cells = [_with_share(cell, share) for cell, share in zip(cells, shares.values, strict=True)]
        if figure.name == STEP_TIME:
            cells = [UNKNOWN if value is None else format_step_time(value) for value in figure.values]
        table.add_row(figure.name, *cells, style="bold" if figure.name == STEP_TIME else None)
    return table


def _cell(figure: Figure, number: int, currency: str | None) -> str:
    value = figure.values[number]
    if value is None or not math.isfinite(value):
        return UNKNOWN
    formats: dict[str, Callable[[float], str]] = {
        "seconds": seconds_text,
        "rate": lambda value: f"{value:.3g}",
        "share": percent,
        "bytes": format_bytes,
        "bits": lambda value: rate_text(value / 8),
        "count": format_count,
        "loss": lambda value: f"{value:.3f}",
        "score": lambda value: f"{value:.2f}",
        "money": lambda value: format_money(value, currency or "$"),
        "duration": format_seconds,
    }
    mark = "~" if figure.is_between and figure.is_between[number] else ""
    return f"{mark}{formats[figure.kind](value)}"


def _with_share(cell: str, share: float | None) -> str:
    return cell if share is None else f"{cell} {100 * share:3.0f} %"


def _paired_table(paired: Sequence[Paired], names: Sequence[str]) -> Table:
    """With two runs their names head the values; with more, each row names its run."""
    is_pair = len(names) == 2
    table = _table(
        "", [names[1] if is_pair else "its", names[0], "difference [95 %]", "p", "", *([] if is_pair else ["run"])]
    )
    for column in table.columns[2:6]:
        column.no_wrap = True
    for item in paired:
        digits = 3 if item.name == "dev loss" else 2
        interval = f"{item.delta:+.{digits}f} [{item.low:+.{digits}f}, {item.high:+.{digits}f}]"
        p_value = "" if item.p_value is None else f"{item.p_value:.3f}"
        verdict = "beyond chance" if item.is_beyond_chance else "may be chance"
        if item.low == item.high == 0:
            interval, verdict = "none", ""
        values = [f"{value:.{digits}f}" for value in (item.other, item.reference)]
        cells = [f"{item.name}, {item.at}", *values, interval, p_value, verdict]
        table.add_row(*cells, *([] if is_pair else [item.run]))
    return table


def _table(first: str, columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table
