"""`dragoman train`: check everything that can be wrong, then start the workers. No torch in this process, but where
torchrun has made it a worker itself."""

import os
import shlex
import sys
from pathlib import Path

import typer

from dragoman.commands.train_options import (
    MAX_RESTARTS,
    AbortIfWaiting,
    Changes,
    DataFolder,
    Detach,
    Fork,
    HelpRecipe,
    Hosts,
    Init,
    Interface,
    MaxCost,
    MaxHours,
    MaxRestarts,
    MinHosts,
    Mirror,
    NodeRank,
    Notify,
    Port,
    Price,
    PushData,
    RecipeName,
    RunFolder,
    Subnet,
    WhenDone,
    Workers,
    Yes,
)
from dragoman.errors import DragomanError

# An option that would have no effect is a mistake: which ones have none, and where.
NEED_HOSTS = ("--node-rank", "--min-hosts", "--push-data", "--detach", "--yes", "--interface", "--subnet")
NOT_AS_RANK = ("--hosts", "--workers", "--mirror", "--when-done", "--fork")
NOT_BY_HAND = ("--min-hosts", "--push-data", "--detach", "--yes", "--subnet", "--mirror", "--when-done", "--fork")
RANK_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
STORE_PORT = 29400


def train(
    recipe: RecipeName = "small",
    data: DataFolder = None,
    run: RunFolder = None,
    workers: Workers = None,
    hosts: Hosts = None,
    min_hosts: MinHosts = None,
    init: Init = None,
    fork: Fork = None,
    changes: Changes = None,
    push_data: PushData = False,
    interface: Interface = None,
    subnet: Subnet = None,
    mirror: Mirror = None,
    max_hours: MaxHours = None,
    max_cost: MaxCost = None,
    price: Price = None,
    notify: Notify = None,
    when_done: WhenDone = None,
    max_restarts: MaxRestarts = MAX_RESTARTS,
    detach: Detach = False,
    yes: Yes = False,
    abort_if_waiting: AbortIfWaiting = None,
    node_rank: NodeRank = None,
    port: Port = STORE_PORT,
    help_recipe: HelpRecipe = False,
) -> None:
    """Train a model; the same command again goes on where it was."""
    from dragoman.commands import train_hosts, train_local
    from dragoman.dist.limits import check_limits

    if help_recipe:
        train_local.show_settings()
        return
    folders = _given("--data", data), _given("--run", run)
    is_rank = all(name in os.environ for name in RANK_VARIABLES)
    places = {
        "--hosts": hosts,
        "--min-hosts": min_hosts,
        "--workers": workers,
        "--node-rank": node_rank,
        "--push-data": push_data,
    }
    ways = {"--detach": detach, "--yes": yes, "--interface": interface, "--subnet": subnet}
    _refuse_idle({**places, **ways, "--mirror": mirror, "--when-done": when_done, "--fork": fork}, is_rank)
    check_limits()
    wishes = train_local.Wishes(
        max_hours, max_cost, price, notify, mirror, when_done, abort_if_waiting, min_hosts, max_restarts
    )
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
