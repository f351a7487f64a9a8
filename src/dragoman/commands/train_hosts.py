"""Training on several hosts: through a controller on the first one, or by hand with one command per host."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.commands.train_local import WORKER, Order, nothing_left, say
from dragoman.errors import DragomanError
from dragoman.run.notices import VARIABLE

if TYPE_CHECKING:
    from dragoman.launch.control.viewer import Place
    from dragoman.launch.hosts.hosts import Host
    from dragoman.launch.hosts.members import Team
    from dragoman.launch.hosts.session import HostSession


MIRROR_SECONDS = 90.0  # to try a mirror; longer than the first host waits for it


@dataclass(frozen=True)
class Network:
    """How the user narrowed the choice of a network."""

    interface: str | None
    subnet: str | None


def train_on_hosts(
    order: Order,
    hosts_text: str,
    workers: int | None,
    network: Network,
    push_data: bool,
    detach: bool,
    yes: bool,
) -> int:
    """Check the hosts, start the run there, and show it until it ends. A person at a terminal may say no before."""
    from dragoman.launch.control.start import Patience, start_run
    from dragoman.launch.control.viewer import Place, follow
    from dragoman.launch.hosts.assembly import assemble
    from dragoman.launch.hosts.network import parse_subnet
    from dragoman.launch.hosts.session import open_sessions, side_by_side

    hosts = _hosts(hosts_text, workers)
    if (order.wishes.min_hosts or 0) > len(hosts):
        problem = f"--min-hosts {order.wishes.min_hosts}, but --hosts names {len(hosts)}"
        raise DragomanError(problem, "it is the number with which the run still goes on")
    order = order.priced(hosts)
    mirror, notify = order.wishes.mirror, order.wishes.notify
    asks = not (yes or detach) and sys.stdin.isatty() and sys.stderr.isatty()
    if network.subnet is not None:
        parse_subnet(network.subnet)  # before anything is copied anywhere
    with open_sessions(hosts) as opened_sessions:
        sessions = _reached(opened_sessions, order.wishes.min_hosts)
        first_place = _running_place(sessions, order)
        if first_place is not None:
            return 0 if detach else follow(first_place, say, 0, is_owner=True)
        team = assemble(
            [session.host for session in sessions],
            order.data,
            order.run,
            say=say,
            interface=network.interface,
            subnet=network.subnet,
            push_data=push_data,
            sessions=sessions,
        )
        if mirror is not None:
            mirror = mirror_place(mirror) if team.is_first_here else mirror
            mirrored = sessions[0].call("check_mirror", timeout_seconds=MIRROR_SECONDS, destination=mirror)
            say(f"mirrored to {mirrored}")
        opened = sessions[0].call("open_run", **_opening(order, team, asks))
        for note in opened["notes"]:
            say(note)
        if nothing_left(order, opened["reached_limit"]):
            return 0
        offset = sessions[0].call("log_size", run=team.run)
        start_run(
            sessions,
            team,
            ["-m", WORKER, opened["job"]],
            opened["attempt"],
            opened["init"],
            mirror,
            order.wishes.when_done,
            Patience(order.wishes.min_hosts, order.wishes.max_restarts),
            {} if notify is None else {VARIABLE: notify},
        )
        place = Place(team.run, session=sessions[0], is_here=team.is_first_here)
        say(f"started on {_describe(team)}; it does not need this terminal")
        if detach:
            say(f"dragoman attach {place.name} shows it, dragoman stop {place.name} ends it")
            return 0
        # A viewer needs the first host only: a connection to another would be one more thing that can hang.
        side_by_side([session.close for session in sessions[1:]])
        return follow(place, say, 0, offset, is_owner=True)


def _reached(sessions: "list[HostSession]", min_hosts: int | None) -> "list[HostSession]":
    """The hosts to go on with: all, or those that answer, where so few are enough; the rest is named."""
    there = [session for session in sessions if session.failure is None]
    if min_hosts is None or len(there) == len(sessions) or len(there) < min_hosts:
        return sessions  # where too few answer, the check of all hosts says what is wrong with each
    for session in sessions:
        if session.failure is not None:
            say(f"warning: going on without {session.host.name}: {session.failure.message}")
    if sessions[0] not in there:
        say(f"warning: {there[0].host.name} owns the run now; if it still ran on {sessions[0].host.name}, both would")
    return there


def _running_place(sessions: "list[HostSession]", order: Order) -> "Place | None":
    """Where a run goes on without some of these hosts: those that are back are let join."""
    from dragoman.launch.control.admission import start_missing
    from dragoman.launch.control.viewer import Place
    from dragoman.launch.hosts.assembly import path_on_hosts
    from dragoman.launch.hosts.facts import machine_identity

    if sessions[0].failure is not None:
        return None
    is_here = sessions[0].call("facts")["identity"] == machine_identity()
    run = path_on_hosts(order.run, is_here)
    back = start_missing(sessions, run)
    if back is None:
        return None
    say(f"it runs already: {', '.join(back)} will take part again")
    return Place(run, session=sessions[0], is_here=is_here)


def _hosts(text: str, workers: int | None) -> "list[Host]":
    from dragoman.launch.hosts.hosts import read_hosts

    return [replace(host, num_workers=host.num_workers or workers) for host in read_hosts(text)]


def mirror_place(mirror: str) -> str:
    """For a first host that is this machine: a plain path begins at the current folder, as those of the run do."""
    from dragoman.launch.hosts.hosts import read_remote

    is_elsewhere = "://" in mirror or mirror.startswith("~") or read_remote(mirror) is not None
    return mirror if is_elsewhere else str(Path(mirror).absolute())


def _opening(order: Order, team: "Team", asks: bool) -> dict[str, Any]:
    init, fork = (
        str(Path(model).absolute()) if model is not None and team.is_first_here else model
        for model in (order.init, order.fork)
    )
    return {
        "recipe": order.recipe.model_dump(),
        "data": team.data,
        "run": team.run,
        "num_workers": team.world_size,
        "command": order.command,
        "init": init,
        "fork": fork,
        "price_per_hour": order.wishes.price_per_hour,
        "asks": asks,
        "most_waiting": order.most_waiting,
        "max_cost": order.wishes.max_cost,
    }


def _describe(team: "Team") -> str:
    parts = [f"{member.name} ({member.num_workers} x {member.interface} {member.address})" for member in team.members]
    return ", ".join(parts)


def train_by_hand(
    order: Order, hosts_text: str, node_rank: int, port: int, workers: int | None, interface: str | None
) -> int:
    """This host's part of a run whose other hosts are given the same command with another --node-rank."""
    from dragoman.launch.local import start_node

    hosts = _hosts(hosts_text, workers)
    if node_rank >= len(hosts):
        names = ", ".join(host.name for host in hosts)
        raise DragomanError(f"--node-rank {node_rank}, but there are {len(hosts)} hosts: {names}", "they count from 0")
    num_workers = [host.num_workers or 1 for host in hosts]
    order = order.priced(hosts)
    order.job(sum(num_workers))  # what is wrong here is said before anybody waits
    return start_node(_worker_command(order), hosts, node_rank, num_workers[node_rank], port, interface)


def _worker_command(order: Order) -> list[str]:
    """`dragoman train` again, as a rank."""
    words = ["-m", "dragoman.cli", "train", *order.recipe_words, "--data", str(order.data), "--run", str(order.run)]
    typed = {
        "--init": order.init,
        "--abort-if-waiting": order.wishes.abort_if_waiting,
        "--price": order.wishes.price_per_hour,
        "--max-cost": order.wishes.max_cost,
    }
    return [*words, *(word for name, value in typed.items() if value is not None for word in (name, str(value)))]
