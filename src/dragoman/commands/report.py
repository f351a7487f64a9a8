"""`dragoman report`: what a run did and why, as one self-contained page, as Markdown with charts, or as JSON."""

import difflib
import gc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.commands.options import HostsFile
from dragoman.commands.remote_records import records_of
from dragoman.errors import CheckFailed, DragomanError

if TYPE_CHECKING:
    from dragoman.report.diagnosis import Diagnosis

FORMATS = ("html", "md", "json")


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder, here or as HOST:PATH.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write; otherwise RUN/report.html.")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="NAMES", help="html, md, json, or several as html,md.")
    ] = "html",
    worksheet: Annotated[
        bool, typer.Option("--worksheet", help="Charts and numbers with the eleven questions left open, for a class.")
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option("--fail-on", metavar="CODE", help="Exit with 1 if this was found; several as CODE,CODE."),
    ] = None,
    hosts: HostsFile = None,
) -> None:
    """What a run did and why: eleven answers, findings, charts, provenance."""
    names, codes = parse_formats(formats), parse_codes(fail_on or [])
    with records_of(str(run), hosts) as (folder, is_here):
        from dragoman.report.diagnosis import as_worksheet, diagnose
        from dragoman.run.reader import read_run

        record = read_run(folder)
        gc.freeze()  # a long run is a million objects: looking through them for cycles would cost a second
        diagnosis = diagnose(record)
        base = out or (record.folder.report_path if is_here else Path(f"{folder.name}-report.html"))
        shown = as_worksheet(diagnosis) if worksheet else diagnosis
        for name in names:
            # A file name given for one format is meant as it is; for several, only its ending can tell them apart.
            path = base if out and len(names) == 1 else base.with_suffix(f".{name}")
            _write(shown, path, name)
            typer.echo(str(path))
    for line in (*shown.headline, shown.scaling):
        if line:
            typer.echo(f"  {line}")
    _refuse(diagnosis, codes)


def parse_formats(text: str) -> list[str]:
    """'html,json' -> both, in that order, each once."""
    names = list(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not names:
        raise DragomanError(f"there is no report format {(unknown or [text])[0]!r}", f"use {', '.join(FORMATS)}")
    return names


def parse_codes(texts: Sequence[str]) -> list[str]:
    """Codes of findings, from options that may each hold several; one that no rule gives is refused."""
    codes = [code.strip().lower() for text in texts for code in text.split(",") if code.strip()]
    if not codes:
        return []
    from dragoman.report.diagnosis import CODES

    for code in codes:
        if code not in CODES:
            near = difflib.get_close_matches(code, CODES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the codes are {', '.join(CODES)}"
            raise DragomanError(f"no finding has the code {code!r}", hint)
    return list(dict.fromkeys(codes))


def _write(diagnosis: "Diagnosis", path: Path, name: str) -> None:
    if name == "html":
        from dragoman.report.page import write_diagnosis as write
    elif name == "md":
        from dragoman.report.markdown import write_markdown as write
    else:
        from dragoman.report.values import write_values as write
    write(diagnosis, path)


def _refuse(diagnosis: "Diagnosis", codes: Sequence[str]) -> None:
    found = next((finding for finding in diagnosis.findings if finding.code in codes), None)
    if found is not None:
        raise CheckFailed(f"{found.code}: {found.title}. {found.evidence}", found.advice)
