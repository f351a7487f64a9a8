"""`dragoman report`: one self-contained page about a run, or its figures as JSON."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import DragomanError

FORMATS = ("html", "json")


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write; otherwise RUN/report.html.")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="NAMES", help="html, json, or both as html,json.")
    ] = "html",
) -> None:
    names = parse_formats(formats)
    from dragoman.report.page import write_json, write_page
    from dragoman.run.reader import read_run

    record = read_run(run)
    base = out or record.folder.report_path
    for name in names:
        # A file name given for one format is meant as it is; for two, only its ending can tell them apart.
        path = base if out and len(names) == 1 else base.with_suffix(f".{name}")
        (write_page if name == "html" else write_json)(record, path)
        typer.echo(str(path))


def parse_formats(text: str) -> list[str]:
    """'html,json' -> both, in that order, each once."""
    names = list(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not names:
        raise DragomanError(f"there is no report format {(unknown or [text])[0]!r}", f"use {', '.join(FORMATS)}")
    return names
