"""`dragoman train`: check everything that can be wrong, then start the workers. No torch in this process, but where
torchrun has made it a worker itself."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import DragomanError

RANK_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
STORE_PORT = 29400


def train(
    recipe: Annotated[str, typer.Argument(help="A shipped recipe, or a TOML file.")] = "small",
    data: Annotated[Path | None, typer.Option(help="Folder made by `dragoman prepare`.")] = None,
    run: Annotated[Path | None, typer.Option(help="Run folder; one that exists goes on where it was.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes on this machine, or on each host; one per GPU where there are.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(metavar="LIST", help="Machines: a,b:2,user@c (b with two workers), or a hosts.toml.")
    ] = None,
    init: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Start from this run's or checkpoint's weights.")
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting of the recipe.")
    ] = None,
    push_data: Annotated[bool, typer.Option("--push-data", help="Copy the data folder to hosts that lack it.")] = False,
    interface: Annotated[str | None, typer.Option(help="Network card between the hosts, such as eth1.")] = None,
    subnet: Annotated[str | None, typer.Option(help="Network between the hosts, such as 10.0.0.0/8.")] = None,
    mirror: Annotated[
        str | None, typer.Option(metavar="DEST", help="Copy the run there all the time: host:path, or a URL.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="With --hosts: start it and leave.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --hosts: do not ask whether to go on with what is predicted.")
    ] = False,
    abort_if_waiting: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Do not begin if more of a step is predicted to be waiting: 50%."),
    ] = None,
    node_rank: Annotated[
        int | None, typer.Option(min=0, help="With --hosts: started by hand on each host; this one's number, from 0.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="With --node-rank: where the first host listens.")] = (
        STORE_PORT
    ),
    help_recipe: Annotated[bool, typer.Option("--help-recipe", help="Show every setting of a recipe.")] = False,
) -> None:
    """Train a model; the same command again goes on where it was."""
    from dragoman.commands import train_hosts, train_local
    from dragoman.dist.limits import check_limits
    from dragoman.recipe import load_recipe

    if help_recipe:
        train_local.show_settings()
        return
    if data is None or run is None:
        missing = "--data" if data is None else "--run"
        raise DragomanError(f"{missing} is missing", "dragoman train RECIPE --data DIR --run DIR")
    is_rank = all(name in os.environ for name in RANK_VARIABLES)
    needs_hosts = {"--node-rank": node_rank, "--push-data": push_data, "--detach": detach, "--yes": yes}
    if hosts is None:
        _refuse({**needs_hosts, "--interface": interface, "--subnet": subnet}, "without --hosts", "name the machines")
    if is_rank:
        _refuse({"--hosts": hosts, "--workers": workers, "--mirror": mirror}, "under torchrun", "leave it out")
    if node_rank is not None:
        _refuse(
            {**needs_hosts, "--node-rank": None, "--subnet": subnet, "--mirror": mirror},
            "with --node-rank",
            "leave it out",
        )
    check_limits()
    settings = load_recipe(recipe, changes or [])
    if not is_rank and not node_rank:
        train_local.advise_rate(load_recipe(recipe, []), settings)
    words = (recipe, *(word for change in changes or [] for word in ("--set", change)))
    asks = not (yes or detach) and sys.stdin.isatty() and sys.stderr.isatty()
    most_waiting = None if abort_if_waiting is None else train_local.parse_share(abort_if_waiting)
    order = train_local.Order(settings, data, run, init, _command_line(), words, asks, most_waiting)
    if is_rank:
        train_local.train_as_rank(order)
    if hosts is None:
        code = train_local.train_here(order, workers or 1, mirror)
    elif node_rank is not None:
        code = train_hosts.train_by_hand(order, hosts, node_rank, port, workers, interface)
    else:
        network = train_hosts.Network(interface, subnet)
        code = train_hosts.train_on_hosts(order, hosts, workers, network, push_data, mirror, detach)
    if code:
        raise typer.Exit(code)


def _command_line() -> str:
    return shlex.join(["dragoman", *sys.argv[1:]])


def _refuse(options: dict[str, object], when: str, hint: str) -> None:
    """An option that would have no effect is a mistake."""
    idle = [name for name, value in options.items() if value is not None and value is not False]
    if idle:
        raise DragomanError(f"{idle[0]} means nothing {when}", hint)
