"""Starts a run on the hosts of a team: a controller on the first one, an agent on each. The near side."""

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

from dragoman.errors import DragomanError
from dragoman.launch.control.controller import Task
from dragoman.launch.hosts.members import Team
from dragoman.launch.hosts.session import HostSession, call_each

JOIN_SECONDS = 60.0
# What a user may have set for workers and would expect on every host; cards differ from host to host.
FORWARDED = (
    "DRAGOMAN_DEVICE",
    "DRAGOMAN_DEBUG",
    "DRAGOMAN_JOIN_SECONDS",
    "DRAGOMAN_MEASURE_SECONDS",
    "OMP_NUM_THREADS",
)
FORWARDED_PREFIXES = ("NCCL_", "TORCH_")


@dataclass(frozen=True)
class Patience:
    """What a run puts up with before it ends."""

    min_hosts: int | None = None  # with so many it goes on; all, if it is not said
    max_restarts: int = 0  # in a row, without a new checkpoint


NO_PATIENCE = Patience()


def start_run(
    sessions: Sequence[HostSession],
    team: Team,
    command: Sequence[str],
    attempt: int,
    init: str | None = None,
    mirror: str | None = None,
    when_done: str | None = None,
    patience: Patience = NO_PATIENCE,
    first_environment: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Returns as soon as everything is started; whether it joins is the controller's to see.

    `first_environment` is for workers of the first host only: it may hold a secret, which needs to travel no further.
    """
    token = secrets.token_hex(32)
    agents = [
        {
            "name": member.name,
            "run": team.run,
            "address": member.address,
            "interface": member.interface,
            "token": token,
            "init": init,
            "environment": {**forwarded_environment(), **({} if number else first_environment)},
        }
        for number, member in enumerate(team.members)
    ]
    told = (team.run, attempt, team.members, token, tuple(command), JOIN_SECONDS)
    task = Task(*told, mirror, when_done, patience.min_hosts, patience.max_restarts, first_agent=agents[0])
    where = sessions[0].call("start_controller", task=task.to_dict())
    agents = [{**agent, "controller_address": where["address"], "controller_port": where["port"]} for agent in agents]
    try:
        sessions[0].call("keep_agents", run=team.run, agents=agents[1:])
        call_each(sessions, "start_agent", [{"task": agent} for agent in agents])
    except BaseException:  # Ctrl-C too: nobody would see the controller and the agents that are there by now
        with suppress(DragomanError):
            sessions[0].call("stop_run", run=team.run, is_now=True)
        raise


def forwarded_environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in FORWARDED or (name.startswith(FORWARDED_PREFIXES) and not name.endswith("SOCKET_IFNAME"))
    }
