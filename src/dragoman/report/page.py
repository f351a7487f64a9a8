"""One self-contained HTML page about a run: fills the templates, replaces the file whole.

The page has no script and no reference to anything outside it, so it opens from a mail attachment.
"""

import re
import time
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from dragoman import __version__
from dragoman.diagnose.finding import Answer, Number
from dragoman.report import masthead, tables, tables_machines
from dragoman.report.charts.drawing import Figure, to_svg
from dragoman.report.charts.figures import draw_figures
from dragoman.report.charts.machines import host_panels
from dragoman.report.charts.steps import time_bar
from dragoman.report.diagnosis import Diagnosis, diagnose
from dragoman.report.files import replace_text
from dragoman.report.layout import place_figures
from dragoman.report.style import style_sheet
from dragoman.run.reader import RunRecord

LINES_TO_WRITE_ON = 4
UNITS = "kB/s|MB/s|GB/s|kb/s|Mb/s|Gb/s|steps/s|B|kB|MB|GB|TB|KiB|MiB|GiB|ms|s|min|h|%"


@dataclass(frozen=True)
class DrawnFigure:
    """A figure with its picture."""

    key: str
    title: str
    caption: str
    svg: Markup


@dataclass(frozen=True)
class AnswerBlock:
    """An answer as the page sets it."""

    number: int
    question: str
    verdict: str
    sentences: str
    numbers: tuple[Number, ...]
    evidence: str
    confidence: str
    missing: str
    is_recorded: bool
    figure: DrawnFigure | None
    seen_at: int | None  # the question that shows its figure already
    seen_title: str


def write_page(run: RunRecord, path: Path) -> None:
    write_diagnosis(diagnose(run), path)


def write_diagnosis(diagnosis: Diagnosis, path: Path) -> None:
    replace_text(path, render_diagnosis(diagnosis))


def render_page(run: RunRecord) -> str:
    return render_diagnosis(diagnose(run))


def render_diagnosis(diagnosis: Diagnosis) -> str:
    """The page as text. Everything but our own style and pictures is escaped by the templates."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True, loader=FunctionLoader(_resource)
    )
    environment.filters["with_code"] = with_code
    content = {
        "style": Markup(style_sheet()),
        "version": __version__,
        "written": masthead.moment(time.time()),
        "is_worksheet": diagnosis.is_worksheet,
        "lines_to_write_on": LINES_TO_WRITE_ON,
        **_head(diagnosis),
        **_figures(diagnosis),
        **_machines(diagnosis),
        **_tables(diagnosis),
    }
    return environment.get_template("page.html").render(content)


def with_code(text: str) -> Markup:
    """Escaped, with what stands between backticks set as code; a number stays on one line with its unit."""
    joined = re.sub(rf"(\d) (?=(?:{UNITS})(?![\w/]))", f"\\1{tables.NO_BREAK_SPACE}", str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", joined))


def _head(diagnosis: Diagnosis) -> dict[str, Any]:
    manifest, summary = diagnosis.run.manifest, diagnosis.summary
    source, _, target = manifest.data.languages.partition("-")
    languages = masthead.language_pair(manifest.data.languages)
    return {
        "title": f"{manifest.name}: {languages}",
        "languages": languages,
        "source_language": source,
        "target_language": target,
        "recipe": str(manifest.recipe.get("name", "custom")),
        "name": manifest.name,
        "began": masthead.moment(manifest.created),
        "state": masthead.state_line(summary),
        "machines": masthead.machines(manifest),
        "notices": masthead.notices(diagnosis.run, summary),
        "headline": diagnosis.headline_rows,
        "scaling": diagnosis.scaling,
        "main_tiles": masthead.main_tiles(summary),
        "other_tiles": masthead.other_tiles(manifest, summary),
        "findings": diagnosis.findings,
    }


def _figures(diagnosis: Diagnosis) -> dict[str, Any]:
    figures = draw_figures(diagnosis.facts)
    places, left = place_figures(diagnosis.answers, figures)
    blocks: list[AnswerBlock] = []
    for answer in diagnosis.answers:
        place = places[answer.number]
        figure = figures[place.key] if place.key else None
        blocks.append(_block(answer, figure, place.shown_at, diagnosis.is_worksheet))
    return {"answers": blocks, "curves": [_drawn(figures[key]) for key in left]}


def _block(answer: Answer, figure: Figure | None, seen_at: int | None, is_open: bool) -> AnswerBlock:
    return AnswerBlock(
        number=answer.number,
        question=answer.question,
        verdict=answer.verdict,
        sentences=answer.sentences,
        numbers=answer.numbers,
        evidence=answer.evidence,
        confidence=answer.confidence,
        missing=answer.missing,
        is_recorded=is_open or answer.confidence != "not recorded",
        figure=_drawn(figure) if figure and seen_at is None else None,
        seen_at=seen_at,
        seen_title=figure.title if figure else "",
    )


def _machines(diagnosis: Diagnosis) -> dict[str, Any]:
    facts, shares = diagnosis.facts, diagnosis.summary.time_shares
    promise = facts.run.prediction
    return {
        "time_bar": _draw(time_bar(shares, with_legend=False)) if shares else Markup(),
        "time_rows": tables.time_rows(diagnosis.summary),
        "host_table": tables_machines.host_table(facts),
        "host_figures": [_drawn(figure) for figure in host_panels(facts)],
        "unsampled": tables_machines.hosts_without_samples(facts),
        "prediction_table": tables_machines.prediction_table(facts),
        "prediction_caption": tables_machines.prediction_caption(promise, facts.num_steps) if promise else "",
    }


def _tables(diagnosis: Diagnosis) -> dict[str, Any]:
    run, summary = diagnosis.run, diagnosis.summary
    manifest, newest = run.manifest, summary.newest_checkpoint
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


def _drawn(figure: Figure) -> DrawnFigure:
    return DrawnFigure(figure.key, figure.title, figure.caption, _draw(figure.chart))


def _draw(chart: Any) -> Markup:
    """Text inside comes from names of dev sets, hosts and cards, and the drawing library escapes it."""
    return Markup(to_svg(chart))


def _resource(name: str) -> str:
    return (resources.files("dragoman.report") / "templates" / name).read_text(encoding="utf-8")
