"""`dragoman fetch`: a run comes home, is verified, and one line says whether its machines may be cancelled."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.commands.options import HostsFile
from dragoman.errors import DragomanError
from dragoman.units import format_bytes

if TYPE_CHECKING:
    from dragoman.launch.copying.fetching import Fetched


def fetch(
    run: Annotated[str, typer.Argument(metavar="HOST:RUN", help="The run folder on its first host.")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Where to put it; otherwise RUN's own name, here.")
    ] = None,
    hosts: HostsFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Bring a run home, verify it, and say whether the machines may be cancelled."""
    from dragoman.launch.copying.fetching import fetch_run
    from dragoman.launch.hosts.hosts import read_remote

    remote = read_remote(run, hosts)
    if remote is None:
        raise DragomanError(f"{run!r} is not HOST:RUN", "for example: dragoman fetch user@a:runs/mine")
    host, path = remote
    fetched = fetch_run(host, path, to, lambda text: typer.echo(text, err=True))
    if as_json:
        values = {**dataclasses.asdict(fetched), "folder": str(fetched.folder), "is_whole": not fetched.missing}
        typer.echo(json.dumps(values, indent=2))
    else:
        _print(fetched, host.name)
    if fetched.missing:
        raise typer.Exit(1)


def _print(fetched: "Fetched", name: str) -> None:
    copied = f"{fetched.folder}: {fetched.num_copied} files copied ({format_bytes(fetched.copied_bytes)})"
    typer.echo(f"{copied}, {fetched.num_files - fetched.num_copied} were here already")
    for note in fetched.notes:
        typer.echo(f"note: {note}")
    if fetched.missing:
        typer.echo("not everything is here:")
        for line in fetched.missing:
            typer.echo(f"  {line}")
        return
    typer.echo(f"everything is here, you can cancel {', '.join(fetched.hosts) or name}")
