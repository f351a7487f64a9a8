"""`dragoman attach`: show a run on several hosts again. Only looks; the run belongs to its controller."""

from typing import Annotated

import typer

from dragoman.commands.options import HostsFile


def attach(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run folder, or HOST:PATH.")],
    lines: Annotated[int, typer.Option(min=0, help="How many earlier lines to show first.")] = 20,
    hosts: HostsFile = None,
) -> None:
    """Show a run on several hosts again, until it ends; Ctrl-C leaves it running."""
    from dragoman.launch.control.viewer import follow, open_place

    with open_place(run, hosts) as place:
        code = follow(place, lambda text: typer.echo(text, err=True), lines)
    if code:
        raise typer.Exit(code)
