"""`dragoman setup`: this very Dragoman, and torch, on every host."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.errors import DragomanError
from dragoman.units import format_seconds

if TYPE_CHECKING:
    from rich.progress import TaskID

    from dragoman.launch.hosts.hosts import Host


def setup(
    hosts: Annotated[str, typer.Option(metavar="HOSTS", help="Names such as a,user@b, or a hosts.toml.")],
    wheels: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Install from this folder of wheels: hosts without internet.")
    ] = None,
    pip_args: Annotated[str, typer.Option(metavar="ARGS", help="Further options of pip, such as an index.")] = "",
) -> None:
    """Install this very version and torch on the hosts, all at once."""
    from dragoman.launch.hosts.hosts import read_hosts
    from dragoman.launch.hosts.ssh import split_words
    from dragoman.launch.install.setup import Order, set_up_hosts

    named = read_hosts(hosts)
    if wheels is not None and not wheels.is_dir():
        raise DragomanError(f"there is no folder {wheels}", "name a folder of wheels")
    order = Order(wheels, tuple(split_words(pip_args, "--pip-args")))
    with _Lines() as lines:
        set_up_hosts(named, order, lines.say, lines.show)


class _Lines:
    """What each host is doing: a line for every stage, and in a terminal the last line of its tools beside a clock."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._tasks: dict[Host, TaskID] = {}
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> "_Lines":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, host: "Host", text: str) -> None:
        seconds = format_seconds(time.monotonic() - self._start)
        with self._lock:
            self._progress.console.print(f"{host.name}: {text} ({seconds})", markup=False, highlight=False)

    def show(self, host: "Host", line: str) -> None:
        with self._lock:
            if host not in self._tasks:
                self._tasks[host] = self._progress.add_task("", total=None)
            self._progress.update(self._tasks[host], description=f"{host.name}: {line}")
