"""`dragoman train`: check everything that can be wrong, then start the workers. No torch in this process, but where
torchrun has made it a worker itself."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import DragomanError

# An option that would have no effect is a mistake: which ones have none, and where.
NEED_HOSTS = ("--node-rank", "--push-data", "--detach", "--yes", "--interface", "--subnet")
NOT_AS_RANK = ("--hosts", "--workers", "--mirror", "--when-done", "--fork")
NOT_BY_HAND = ("--push-data", "--detach", "--yes", "--subnet", "--mirror", "--when-done", "--fork")
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
    init: Annotated[str | None, typer.Option(metavar="MODEL", help="Start from the weights of this run.")] = None,
    fork: Annotated[str | None, typer.Option(metavar="RUN", help="Begin where this run or checkpoint is.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting of the recipe.")
    ] = None,
    push_data: Annotated[bool, typer.Option("--push-data", help="Copy the data folder to hosts that lack it.")] = False,
    interface: Annotated[str | None, typer.Option(help="Network card between the hosts, such as eth1.")] = None,
    subnet: Annotated[str | None, typer.Option(help="Network between the hosts, such as 10.0.0.0/8.")] = None,
    mirror: Annotated[
        str | None, typer.Option(metavar="DEST", help="Copy the run there all the time: host:path, or a URL.")
    ] = None,
    max_hours: Annotated[
        float | None, typer.Option(metavar="H", help="End after so many hours of training, over all attempts.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(metavar="AMOUNT", help="End when training has cost so much; needs a price.")
    ] = None,
    price: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="Per hour, of all machines; else that of hosts.toml.")
    ] = None,
    notify: Annotated[str | None, typer.Option(metavar="URL", help="Tell this web address how the run goes.")] = None,
    when_done: Annotated[
        str | None, typer.Option(metavar="CMD", help="Run this on the first host once the run has ended well.")
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

    if help_recipe:
        train_local.show_settings()
        return
    folders = _given("--data", data), _given("--run", run)
    is_rank = all(name in os.environ for name in RANK_VARIABLES)
    places = {"--hosts": hosts, "--workers": workers, "--node-rank": node_rank, "--push-data": push_data}
    ways = {"--detach": detach, "--yes": yes, "--interface": interface, "--subnet": subnet}
    _refuse_idle({**places, **ways, "--mirror": mirror, "--when-done": when_done, "--fork": fork}, is_rank)
    check_limits()
    wishes = train_local.Wishes(max_hours, max_cost, price, notify, mirror, when_done, abort_if_waiting)
    order = train_local.make_order(recipe, changes or [], *folders, init, fork, _command_line(), wishes)
    if not is_rank and not node_rank:
        train_local.advise_rate(recipe, order.recipe)
    with order.prepared():
        if is_rank:
            train_local.train_as_rank(order)
        if hosts is None:
            code = train_local.train_here(order, workers or 1)
        elif node_rank is not None:
            code = train_hosts.train_by_hand(order, hosts, node_rank, port, workers, interface)
        else:
            network = train_hosts.Network(interface, subnet)
            code = train_hosts.train_on_hosts(order, hosts, workers, network, push_data, detach, yes)
    if code:
        raise typer.Exit(code)


def _given(option: str, folder: Path | None) -> Path:
    if folder is None:
        raise DragomanError(f"{option} is missing", "dragoman train RECIPE --data DIR --run DIR")
    return folder


def _command_line() -> str:
    """As it was typed, but without secrets: it is kept in the run folder and shown in reports."""
    from dragoman.run.notices import masked_words

    return shlex.join(["dragoman", *masked_words(sys.argv[1:])])


def _refuse_idle(options: dict[str, object], is_rank: bool) -> None:
    given = [name for name, value in options.items() if value is not None and value is not False]
    if "--hosts" not in given:
        _refuse(given, NEED_HOSTS, "without --hosts", "name the machines")
    if is_rank:
        _refuse(given, NOT_AS_RANK, "under torchrun", "leave it out")
    if "--node-rank" in given:
        _refuse(given, NOT_BY_HAND, "with --node-rank", "leave it out")


def _refuse(given: list[str], idle: tuple[str, ...], when: str, hint: str) -> None:
    found = [name for name in idle if name in given]
    if found:
        raise DragomanError(f"{found[0]} means nothing {when}", hint)
