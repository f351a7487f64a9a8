"""From the hosts a user named to the members of a run: everything checked, the data in place, the network chosen."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dragoman.data.shards import ShardSet, open_shards
from dragoman.errors import DragomanError
from dragoman.launch.copying.push import push_data_folder
from dragoman.launch.hosts.facts import machine_identity
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.members import Member, Team
from dragoman.launch.hosts.network import Measured
from dragoman.launch.hosts.routes import Say, find_network
from dragoman.launch.hosts.session import HostSession, open_sessions
from dragoman.launch.hosts.survey import Answer, Problems, ask_all, check_data, check_run_folders, survey_hosts

NEEDS_BYTES = 2 << 30


def assemble(
    hosts: Sequence[Host],
    data: str | Path,
    run: str | Path,
    *,
    say: Say,
    interface: str | None = None,
    subnet: str | None = None,
    push_data: bool = False,
    local_data: Path | None = None,
    needs_bytes: int = NEEDS_BYTES,
    sessions: Sequence[HostSession] | None = None,
) -> Team:
    """Check every host, then choose the network. All that is wrong with hosts is raised as one error, a line for each.

    Data to push that is not on this machine is an error of its own, raised before. Sessions that are open already are
    used and left open.
    """
    with ExitStack() as stack:
        opened = list(sessions) if sessions is not None else stack.enter_context(open_sessions(hosts))
        problems = Problems()
        facts = survey_hosts(opened, problems)
        is_first_here = opened[0] in facts and facts[opened[0]]["identity"] == machine_identity()
        paths = {"data": path_on_hosts(data, is_first_here), "run": path_on_hosts(run, is_first_here)}
        folders = ask_all(list(facts), "inspect", problems, **paths)
        check_run_folders(folders, needs_bytes, problems)
        pushed = _open_local(local_data or Path(data).expanduser()) if push_data else None
        wanted, origin = _wanted_data(folders, pushed)
        if pushed is None:
            check_data(folders, wanted, origin, problems)
        problems.raise_any()
        if pushed is not None:
            lacking = [session for session, found in folders.items() if found["data"]["fingerprint"] != wanted]
            push_data_folder(lacking, pushed, paths["data"], say)
        network = find_network(opened, list(facts.values()), interface, subnet, say)
        say(f"network: {network.describe()}")
        members = members_of(facts, network, say)
    resolved = {kind: _resolve([folder[kind] for folder in folders.values()], paths[kind]) for kind in paths}
    return Team(
        members,
        network.candidate.label,
        network.slowest,
        resolved["data"],
        resolved["run"],
        wanted,
        is_first_here,
    )


def path_on_hosts(path: str | Path, is_first_here: bool) -> str:
    """A relative path begins at the current folder if the first host is this machine, else at each login folder."""
    given = Path(path)
    return str(Path.cwd() / given) if is_first_here and not str(given).startswith("~") else str(given)


def _resolve(found: Sequence[Mapping[str, Any]], given: str) -> str:
    """Absolute where that is the same on every host."""
    paths = {folder["path"] for folder in found}
    return str(paths.pop()) if len(paths) == 1 else given


def _wanted_data(folders: Mapping[HostSession, Answer], pushed: ShardSet | None) -> tuple[str, str]:
    """The fingerprint all hosts must have, and whose it is: what is pushed, else that of the first that has one."""
    if pushed is not None:
        return pushed.manifest.fingerprint, "this machine"
    for session, answer in folders.items():
        if answer["data"]["fingerprint"]:
            return answer["data"]["fingerprint"], session.host.name
    return "", ""


def members_of(facts: Mapping[HostSession, Answer], network: Measured, say: Say) -> tuple[Member, ...]:
    """The hosts with their workers and their cards on the network that was chosen."""
    members: list[Member] = []
    for (session, answer), card in zip(facts.items(), network.candidate.cards, strict=True):
        host, num_gpus = session.host, answer["num_gpus"]
        num_workers = host.num_workers or num_gpus or 1
        if 0 < num_gpus < num_workers:
            say(f"warning: {host.name} has {num_gpus} GPUs for {num_workers} workers, which will share them")
        way = (host.name, host.target, host.port, host.python)
        members.append(Member(*way, card.address, card.interface, num_workers, host.price_per_hour))
    return tuple(members)


def _open_local(path: Path) -> ShardSet:
    try:
        return open_shards(path)
    except DragomanError as error:
        raise DragomanError(error.message, "--push-data copies a data folder of this machine") from None
