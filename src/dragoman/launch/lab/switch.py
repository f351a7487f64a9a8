"""The first process of a lab: its network is the switch, its death is the end of every process on every host."""

import json
import os
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dragoman.errors import DragomanError
from dragoman.launch.lab import wiring
from dragoman.launch.lab.batch import run_batch
from dragoman.launch.lab.files import SSH_PORT, host_folder
from dragoman.launch.lab.host import WIRED, be_host
from dragoman.launch.lab.namespaces import (
    NEW_HOST,
    die_with_parent,
    mount,
    own_mounts,
    quieten_network,
    set_hostname,
    unshare,
)
from dragoman.launch.lab.plan import EmulatedHost, LabPlan
from dragoman.launch.lab.relay import lay_cables
from dragoman.launch.lab.requirements import tool_path

_LIMIT_SECONDS = 20.0
_LISTENING = "0A"


@dataclass(frozen=True)
class _Child:
    host: EmulatedHost
    pid: int
    channel: socket.socket


def be_switch(plan: LabPlan) -> NoReturn:
    """Make the lab, report on standard output, then only bury the dead. Runs as the first process of its own PIDs."""
    try:
        die_with_parent()
        children, notes = _make(plan)
        report({"pids": {child.host.name: child.pid for child in children}, "notes": sorted(set(notes))})
    except OSError as error:
        # A time that ran out has no words of the system.
        report({"error": error.strerror or str(error), "is_denied": isinstance(error, PermissionError)})
        os._exit(1)
    except Exception as error:
        report({"error": getattr(error, "message", str(error)), "hint": getattr(error, "hint", "")})
        os._exit(1)
    os.close(1)
    while True:
        os.wait()


def report(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _make(plan: LabPlan) -> tuple[list[_Child], list[str]]:
    unshare(NEW_HOST)
    set_hostname("switch")
    own_mounts()
    mount("proc", "/proc", "proc")
    quieten_network()
    children = [_start(plan, host) for host in plan.hosts]
    notes = [note for child in children for note in _hear(child)]
    pids = {child.host.name: child.pid for child in children}
    if plan.delay_seconds:
        lay_cables(plan, pids)
    run_batch("ip", wiring.switch_links(plan, pids))
    run_batch("tc", wiring.switch_shaping(plan))
    for child in children:
        child.channel.sendall(WIRED)
    for child in children:
        notes += _hear(child)
        if plan.has_sshd:
            _await_sshd(plan, child)
    return children, notes


def _start(plan: LabPlan, host: EmulatedHost) -> _Child:
    here, there = socket.socketpair()
    sshd = tool_path("sshd") if plan.has_sshd else ""
    pid = os.fork()
    if pid == 0:
        here.close()
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        be_host(plan, host, there, sshd)
    there.close()
    here.settimeout(_LIMIT_SECONDS)
    return _Child(host, pid, here)


def _hear(child: _Child) -> list[str]:
    """Its notes."""
    heard = b""
    while not heard.endswith(b"\n"):
        part = child.channel.recv(65536)
        if not part:
            raise DragomanError(f"host {child.host.name} ended while it was made")
        heard += part
    message = json.loads(heard)
    if "error" in message:
        raise DragomanError(message["error"], message["hint"])
    return message["notes"]


def _await_sshd(plan: LabPlan, child: _Child) -> None:
    table = Path(f"/proc/{child.pid}/net/tcp")
    deadline = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < deadline:
        if os.waitpid(child.pid, os.WNOHANG)[0]:
            said = (host_folder(plan, child.host) / "sshd.log").read_text().strip().splitlines()
            raise DragomanError(f"sshd of host {child.host.name} ended: {said[-1] if said else 'without a word'}")
        if any(_listens_for_ssh(line) for line in table.read_text().splitlines()[1:]):
            return
        time.sleep(0.005)
    raise DragomanError(f"sshd of host {child.host.name} did not start listening in {_LIMIT_SECONDS:.0f} s")


def _listens_for_ssh(line: str) -> bool:
    _, local, _, state, *_ = line.split()
    return state == _LISTENING and local.endswith(f":{SSH_PORT:04X}")
