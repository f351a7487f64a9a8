"""One self-contained HTML page about a run: reads the run, fills the template, replaces the file whole.

The page has no script and no reference to anything outside it, so it opens from a mail attachment.
"""

import json
import time
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from dragoman import __version__
from dragoman.errors import DragomanError
from dragoman.report import charts, headline, tables
from dragoman.report.summary import Summary, summarize, summary_to_json
from dragoman.run.folder import replaced_file
from dragoman.run.reader import RunRecord

# In the dark, the style sheet exchanges each colour of the charts for its neighbour here.
DARK = {
    charts.COLOURS["ink"]: "#d5dae1",
    charts.COLOURS["muted"]: "#98a2b0",
    charts.COLOURS["grid"]: "#2c333d",
    charts.COLOURS["first"]: "#6eaae6",
    charts.COLOURS["second"]: "#e8955f",
    charts.COLOURS["third"]: "#6fc29b",
    charts.COLOURS["fourth"]: "#b39be0",
    charts.PART_COLOURS["forward"]: "#4f93da",
    charts.PART_COLOURS["backward"]: "#3b71ab",
    charts.PART_COLOURS["optimizer"]: "#2b5077",
    charts.PART_COLOURS["other"]: "#5a626e",
}


@dataclass(frozen=True)
class DrawnFigure:
    """A figure with its picture."""

    key: str
    title: str
    caption: str
    svg: Markup


def write_page(run: RunRecord, path: Path) -> None:
    _replace(path, render_page(run))


def write_json(run: RunRecord, path: Path) -> None:
    values = summary_to_json(run, summarize(run))
    _replace(path, json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def render_page(run: RunRecord) -> str:
    """The page as text. Everything but our own style and pictures is escaped by the template."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    summary = summarize(run)
    content = {
        "style": Markup(_style()),
        "version": __version__,
        "written": headline.moment(time.time()),
        **_head(run, summary),
        **_pictures(run, summary),
        **_tables(run, summary),
    }
    return environment.from_string(_resource("page.html")).render(content)


def _head(run: RunRecord, summary: Summary) -> dict[str, Any]:
    manifest = run.manifest
    source, _, target = manifest.data.languages.partition("-")
    recipe = str(manifest.recipe.get("name", "custom"))
    languages = headline.language_pair(manifest.data.languages)
    return {
        "title": f"{manifest.name}: {languages}",
        "languages": languages,
        "source_language": source,
        "target_language": target,
        "recipe": recipe,
        "name": manifest.name,
        "began": headline.moment(manifest.created),
        "state": headline.state_line(summary),
        "machines": headline.machines(manifest),
        "notices": headline.notices(run, summary),
        "main_tiles": headline.main_tiles(summary),
        "other_tiles": headline.other_tiles(manifest, summary),
    }


def _pictures(run: RunRecord, summary: Summary) -> dict[str, Any]:
    figures = [
        DrawnFigure(figure.key, figure.title, figure.caption, _draw(figure.chart))
        for figure in charts.draw_figures(run)
    ]
    bar = _draw(charts.time_bar(summary.time_shares, with_legend=False)) if summary.time_shares else Markup()
    return {"figures": figures, "time_bar": bar, "time_rows": tables.time_rows(summary)}


def _tables(run: RunRecord, summary: Summary) -> dict[str, Any]:
    manifest = run.manifest
    newest = summary.newest_checkpoint
    settings = tables.settings(manifest)
    return {
        "samples": tables.samples(run),
        "data_table": tables.data_table(manifest),
        "data_facts": tables.data_facts(manifest),
        "checkpoint": newest,
        "file_table": tables.file_table(newest, manifest.num_parameters) if newest else None,
        "checkpoint_table": tables.checkpoint_table(summary.checkpoints),
        "attempt_table": tables.attempt_table(summary),
        "settings": settings,
        "num_changed": sum(setting.is_changed for setting in settings),
        "provenance": tables.provenance(run, summary),
        "commands": list(dict.fromkeys(f"$ {item.command}" for item in manifest.attempts if item.command)),
    }


def _draw(chart: Any) -> Markup:
    """Text inside comes from dev-set names at most, and the drawing library escapes it."""
    return Markup(charts.to_svg(chart))


def _style() -> str:
    rules = [f'[{part}="{light}"] {{ {part}: {dark}; }}' for light, dark in DARK.items() for part in ("fill", "stroke")]
    dark = "\n  ".join(rules)
    return _resource("style.css") + f"@media screen and (prefers-color-scheme: dark) {{\n  {dark}\n}}\n"


def _resource(name: str) -> str:
    return (resources.files("dragoman.report") / name).read_text(encoding="utf-8")


def _replace(path: Path, text: str) -> None:
    try:
        with replaced_file(path) as fresh:
            fresh.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        problem = f"cannot write {path}: {error.strerror}"
        raise DragomanError(problem, "name another file with --out") from None
