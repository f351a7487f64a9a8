"""`dragoman compare`: runs side by side, and one sentence on what explains the difference."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.commands.options import HostsFile
from dragoman.commands.remote_records import records_of
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.diagnose.comparison.compare import RunComparison


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Run folders, here or as HOST:PATH; the first is the reference."),
    ],
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every figure too: a row each, a column per run.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    hosts: HostsFile = None,
) -> None:
    """Settings that differ, step-time split, bytes, quality at equal tokens and equal time, cost; and why."""
    if len(runs) < 2:
        raise DragomanError("one run has nothing to be compared with", "name two run folders or more")
    with ExitStack() as opened:
        folders = [opened.enter_context(records_of(run, hosts))[0] for run in runs]
        comparison = _compare(short_names(runs), folders)
    from dragoman.commands.compare_output import print_comparison, to_json, write_csv

    if csv is not None:
        write_csv(csv, comparison)
    if as_json:
        typer.echo(to_json(comparison))
        return
    print_comparison(comparison)
    if csv is not None:
        typer.echo(f"figures: {csv}")


def short_names(runs: Sequence[str]) -> list[str]:
    """The last part of each path, or as many as tell them apart; a run named twice is numbered."""
    paths = [_parts_of(run) for run in runs]
    names = ["/".join(parts[-1:]) for parts in paths]
    for length in range(2, max(len(parts) for parts in paths) + 1):
        if len(set(names)) == len({tuple(parts) for parts in paths}):
            break
        names = ["/".join(parts[-length:]) for parts in paths]
    return [
        name if name not in names[:number] else f"{name} ({1 + names[:number].count(name)})"
        for number, name in enumerate(names)
    ]


def _parts_of(run: str) -> list[str]:
    host, colon, path = run.partition(":")
    if colon and "/" not in host:
        return [f"{host}:", *_named_parts(path)]
    # A link keeps the name it was given; `.` and `..` have none.
    here = Path(run)
    return _named_parts(str(here.absolute() if here.name not in ("", "..") else here.resolve())) or [run]


def _named_parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _compare(names: Sequence[str], folders: Sequence[Path]) -> "RunComparison":
    from rich.console import Console

    from dragoman.diagnose.comparison.compare import compare_runs
    from dragoman.run.folder import open_run_folder
    from dragoman.run.reader import read_run

    for folder in folders:
        open_run_folder(folder)  # what is no run is said before a long one is read
    if not sys.stderr.isatty():
        return compare_runs(names, [read_run(folder) for folder in folders])
    with Console(stderr=True).status(f"comparing {len(folders)} runs"):
        return compare_runs(names, [read_run(folder) for folder in folders])
