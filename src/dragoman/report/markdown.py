"""A report as Markdown with PNG charts beside it, ready to hand in. Escapes what the run's texts contain."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dragoman.diagnose.finding import Answer, Finding
from dragoman.errors import DragomanError
from dragoman.report import masthead, tables, tables_machines
from dragoman.report.charts.drawing import Figure, to_png
from dragoman.report.charts.figures import draw_figures
from dragoman.report.charts.machines import host_panels
from dragoman.report.charts.steps import time_bar
from dragoman.report.diagnosis import Diagnosis
from dragoman.report.files import replace_bytes, replace_text
from dragoman.report.layout import Place, place_figures

LINES_TO_WRITE_ON = 4
# A class writes its answer here; underscores stay visible on paper.
BLANK = "\n\n".join(["\\_" * 72] * LINES_TO_WRITE_ON)
NO_PREDICTION = "No prediction is recorded: `dragoman train` on more than one host writes one before its first step."


def write_markdown(diagnosis: Diagnosis, path: Path) -> None:
    """`report.md`, and its charts in `report-files/` beside it."""
    folder = path.with_name(f"{path.stem}-files")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DragomanError(f"cannot write to {folder}: {error.strerror}", "name another file with --out") from None
    text, charts = markdown_of(diagnosis, folder.name)
    for name, chart in charts.items():
        replace_bytes(folder / name, to_png(chart))
    replace_text(path, text)


def markdown_of(diagnosis: Diagnosis, folder: str) -> tuple[str, dict[str, Any]]:
    """(the text, file name -> chart); the text refers to the charts as files of `folder`."""
    charts: dict[str, Any] = {}

    def picture(figure: Figure) -> str:
        name = f"{re.sub(r'[^A-Za-z0-9.-]', '_', figure.key)}.png"
        charts[name] = figure.chart
        return f"![{escaped(figure.title)}]({folder}/{name})\n\n*{escaped(figure.title)}. {escaped(figure.caption)}*"

    figures = draw_figures(diagnosis.facts)
    places, left = place_figures(diagnosis.answers, figures)
    parts = [*_head(diagnosis), "## Eleven questions" if diagnosis.is_worksheet else "## Eleven answers"]
    for answer in diagnosis.answers:
        place = places[answer.number]
        own = figures[place.key] if place.key and place.shown_at is None else None
        parts += [*_answer(answer, place, diagnosis.is_worksheet), *([picture(own)] if own else [])]
    if not diagnosis.is_worksheet:
        parts += ["## Findings, and what to do", *_findings(diagnosis.findings)]
    shares = diagnosis.summary.time_shares
    if shares:
        bar = Figure("where-the-time-went", "Where the time went", "All steps, mean of all ranks.", time_bar(shares))
        parts += ["## Where the time went", picture(bar), _time_table(diagnosis)]
    if left:
        parts += ["## Curves", *(picture(figures[key]) for key in left)]
    parts += [*_hosts(diagnosis), *(picture(figure) for figure in host_panels(diagnosis.facts))]
    parts += [*_prediction(diagnosis), *_records(diagnosis)]
    return "\n\n".join(part for part in parts if part) + "\n", charts


def escaped(text: str) -> str:
    """Plain text that stays plain: nothing in it is a mark of Markdown or a tag."""
    flat = " ".join(text.split())
    marked = re.sub(r"([\\`*_\[\]|#~])", r"\\\1", flat)
    return marked.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _spoken(text: str) -> str:
    """A sentence of ours: what stands between backticks stays code."""
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(piece if piece.startswith("`") else escaped_inside(piece) for piece in pieces)


def escaped_inside(text: str) -> str:
    """As `escaped`, but spaces at the ends stay: what follows is code."""
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{head and ' '}{escaped(text)}{tail and ' '}" if text.strip() else text


def _head(diagnosis: Diagnosis) -> list[str]:
    manifest, summary = diagnosis.run.manifest, diagnosis.summary
    recipe = escaped(str(manifest.recipe.get("name", "custom")))
    began = masthead.moment(manifest.created)
    parts = [
        f"# {escaped(masthead.language_pair(manifest.data.languages))}",
        f"Recipe **{recipe}**, run **{escaped(manifest.name)}**, begun {began}. "
        f"{escaped(masthead.state_line(summary))} {escaped(masthead.machines(manifest))}.",
    ]
    if diagnosis.is_worksheet:
        parts.append("Name: " + "\\_" * 40 + " Date: " + "\\_" * 16)
    parts += [f"**{label}.** {_spoken(line)}" for label, line in diagnosis.headline_rows]
    if diagnosis.scaling:
        parts.append(f"**Scaling.** {_spoken(diagnosis.scaling)}")
    parts += [f"> {escaped(notice)}" for notice in masthead.notices(diagnosis.run, summary)]
    tiles = [*masthead.main_tiles(summary), *masthead.other_tiles(manifest, summary)]
    parts.append(table_text(("Figure", "", ""), [(tile.label, tile.value, tile.detail) for tile in tiles]))
    return parts


def _answer(answer: Answer, place: Place, is_open: bool) -> list[str]:
    parts = [f"### {answer.number}. {answer.question}"]
    if is_open:
        parts.append(BLANK)
    else:
        parts.append(f"**{_spoken(answer.verdict)}** {_spoken(answer.sentences)}")
    if answer.numbers:
        parts.append("\n".join(f"- {escaped(item.label)}: {escaped(item.value_text)}" for item in answer.numbers))
    if answer.evidence and answer.confidence != "not recorded":
        parts.append(f"*How this was decided: {_spoken(answer.evidence)} Confidence: {answer.confidence}.*")
    if answer.missing:
        parts.append(f"*Not recorded: {_spoken(answer.missing)}*")
    if place.shown_at is not None:
        parts.append(f"*Chart: at question {place.shown_at}.*")
    return parts


def _findings(findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return ["None of the rules found anything wrong with this run."]
    return [
        f"### {escaped(finding.title)} (`{finding.code}`, {finding.level})\n\n{_spoken(finding.evidence)}\n\n"
        f"**Do this.** {_spoken(finding.advice)}"
        + (f" **Then.** {_spoken(finding.effect)}" if finding.effect else "")
        + f"\n\nMore: {finding.link}"
        for finding in findings
    ]


def _time_table(diagnosis: Diagnosis) -> str:
    rows = [(row.label, row.share, row.seconds, row.meaning) for row in tables.time_rows(diagnosis.summary)]
    return table_text(("Part", "Share", "Time", "Meaning"), rows)


def _hosts(diagnosis: Diagnosis) -> list[str]:
    facts = diagnosis.facts
    table = tables_machines.host_table(facts)
    missing = tables_machines.hosts_without_samples(facts)
    parts = ["## Hosts", table_text(table.columns, table.rows) if table else "No host is recorded."]
    return [*parts, f"No samples came from {escaped(', '.join(missing))}."] if missing else parts


def _prediction(diagnosis: Diagnosis) -> list[str]:
    facts = diagnosis.facts
    table, promise = tables_machines.prediction_table(facts), facts.run.prediction
    if table is None or promise is None:
        return ["## Prediction against reality", NO_PREDICTION]
    caption = tables_machines.prediction_caption(promise, facts.num_steps)
    return ["## Prediction against reality", escaped(caption), table_text(table.columns, table.rows)]


def _records(diagnosis: Diagnosis) -> list[str]:
    run, summary = diagnosis.run, diagnosis.summary
    manifest, newest = run.manifest, summary.newest_checkpoint
    data, attempts = tables.data_table(manifest), tables.attempt_table(summary)
    parts = ["## Sample translations"]
    for sample in tables.samples(run):
        rows = [("source", sample.source), *((when, text) for when, text, _ in sample.hypotheses)]
        parts.append(table_text(("", ""), [*rows, ("reference", sample.reference)]))
    if len(parts) == 1:
        parts.append("No translations are recorded.")
    parts += ["## Data", table_text(data.columns, data.rows), _facts(tables.data_facts(manifest)), "## Checkpoints"]
    if newest is None:
        parts.append("No checkpoint is recorded.")
    else:
        files = tables.file_table(newest, manifest.num_parameters)
        parts += [f"The files of {escaped(newest.name)}:", table_text(files.columns, files.rows)]
    changed = [(item.key, item.value, item.meaning) for item in tables.settings(manifest) if item.is_changed]
    parts += ["## Recipe", "Settings unlike the defaults:", table_text(("Setting", "Value", "Meaning"), changed)]
    parts += ["## Provenance", table_text(attempts.columns, attempts.rows), _facts(tables.provenance(run, summary))]
    commands = dict.fromkeys(item.command for item in manifest.attempts if item.command)
    return [*parts, *(f"    $ {' '.join(command.split())}" for command in commands)]


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {escaped(name)}: {escaped(value)}" for name, value in pairs)


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of GitHub's kind; nothing where it has no row."""
    if not rows:
        return ""
    lines = [columns, ["---"] * len(columns)]
    head = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    body = "\n".join(f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows)
    return f"{head}\n{body}"
