"""`dragoman stop`: end a run on several hosts, wherever its terminal is."""

from typing import Annotated

import typer

from dragoman.commands.options import HostsFile


def stop(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run folder, or HOST:PATH.")],
    now: Annotated[
        bool, typer.Option("--now", help="Kill the workers at once: steps since a checkpoint are lost.")
    ] = False,
    hosts: HostsFile = None,
) -> None:
    """End every worker of a run on every host; they save first."""
    from dragoman.launch.control.viewer import open_place
    from dragoman.launch.control.viewer import stop as stop_place

    with open_place(run, hosts) as place:
        answer = stop_place(place, now)
    names = ", ".join(answer["members"])
    typer.echo(f"{answer['reason']} in {answer['seconds']:.1f} s; no worker is left on {names}")
