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
    from dragoman.run.control import INTERRUPTED, PREEMPTED

    with open_place(run, hosts) as place:
        answer = stop_place(place, now)
    names = ", ".join(answer["members"])
    # People give machines back on this line: it is said only where every host reported.
    if answer["state"] == "ended" and answer["exit_code"] in (0, INTERRUPTED, PREEMPTED):
        typer.echo(f"{answer['reason']} in {answer['seconds']:.1f} s; no worker is left on {names}")
        return
    reason = answer["reason"] if answer["state"] == "ended" else "the controller died while it stopped the run"
    typer.echo(f"{reason}; look yourself whether workers are left on {names}", err=True)
    raise typer.Exit(1)
