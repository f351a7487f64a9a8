"""`dragoman watch`: a run live, as a page or in the terminal. Only looks; ending it changes nothing."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.commands.options import HostsFile

PORT = 8765


def watch(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run folder, or HOST:PATH; it may not be there yet.")],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; others than this machine's own need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the page; 0 takes a free one.")] = PORT,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in the web browser.")] = False,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Show the run here instead, for example over ssh.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Print how the run stands, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --once: as JSON.")] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Print the command that shows the run in TensorBoard, and end.")
    ] = False,
    hosts: HostsFile = None,
) -> None:
    """Show a run live, until Ctrl-C."""
    if tensorboard:
        typer.echo(tensorboard_command(run, hosts))
        return
    from dragoman.web.watch.place import open_place

    place = open_place(run, hosts)
    if terminal or once or as_json:
        from dragoman.commands import watch_terminal

        if once or as_json:
            watch_terminal.print_once(place, as_json)
        else:
            watch_terminal.follow(place)
        return
    from dragoman.web.watch.server import serve

    def say(address: str) -> None:
        typer.echo(f"{run} is shown on {address}")
        _say_more(address, host, browser)

    serve(place, host, port, say)


def tensorboard_command(run: str, hosts: str | None = None) -> str:
    """The command line for a run here or on another host, where it is shown through a tunnel."""
    from dragoman.launch.hosts.hosts import read_remote
    from dragoman.run.folder import RunFolder

    remote = read_remote(run, hosts) if ":" in run else None
    if remote is None:
        program = "tensorboard" if shutil.which("tensorboard") else f"{shlex.quote(sys.executable)} -m tensorboard.main"
        return f"{program} --logdir {shlex.quote(str(RunFolder(Path(run)).tensorboard_path))}"
    far, path = remote
    port = f" -p {far.port}" if far.port else ""
    command = f"tensorboard --logdir {shlex.quote(str(RunFolder(Path(path)).tensorboard_path))}"
    return f"ssh{port} -L 6006:localhost:6006 {shlex.quote(far.target)} {shlex.quote(command)}"


def _say_more(address: str, host: str, browser: bool) -> None:
    from urllib.parse import urlsplit

    parts = urlsplit(address)
    if "SSH_CONNECTION" in os.environ and parts.hostname in ("127.0.0.1", "localhost", "::1"):
        there = os.environ["SSH_CONNECTION"].split()[2]
        typer.echo(f"from your own machine: ssh -L {parts.port}:localhost:{parts.port} {there}, then open it there")
    typer.echo("Ctrl-C ends the page; the run goes on")
    if browser:
        import webbrowser

        webbrowser.open(address)
