"""Workers on this machine: one as a plain child, several through torchrun's agent, alone or among other hosts."""

import ipaddress
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

import psutil

from dragoman.errors import DragomanError
from dragoman.launch.control.outcome import USER_ERRORS, Exit, Outcome, judge
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.restarts import Restarts
from dragoman.run.control import PREEMPTED, WARNINGS

CARD_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def start_workers(module: str, arguments: Sequence[str], num_workers: int) -> int:
    """Run `python -m module arguments` as `num_workers` ranks and return the exit code."""
    return _run(module, arguments, num_workers).exit_code


def keep_training(
    module: str, job: str, attempt: int, num_workers: int, restarts: Restarts, say: Callable[[str], None]
) -> int:
    """Attempts, one after the other, until one is the last; its exit code."""
    while True:
        outcome = _run(module, [job, str(attempt)], num_workers)
        if not restarts.may_follow(outcome):
            return outcome.exit_code
        attempt += 1
        say(f"{outcome.reason}: attempt {attempt} follows")


def _run(module: str, arguments: Sequence[str], num_workers: int) -> Outcome:
    command = ["-m", module, *arguments]
    threads = str(threads_per_worker(num_workers))
    with _environment(OMP_NUM_THREADS=threads, GLOO_SOCKET_IFNAME=_loopback()):
        if num_workers > 1:
            from dragoman.dist.elastic import run_workers

            return _judge(run_workers(command, num_workers), socket.gethostname())
        code = _run_alone(command)
    outcome = judge([Exit(socket.gethostname(), 0, code)] if code else [], is_stopped=False)
    if code in USER_ERRORS:
        return outcome
    return replace(outcome, exit_code=128 - code if code < 0 else code)


def start_node(
    command: Sequence[str], hosts: Sequence[Host], node_rank: int, num_workers: int, port: int, interface: str | None
) -> int:
    """This host's workers among those of other hosts, which are started by hand; the exit code."""
    from dragoman.dist.elastic import run_node
    from dragoman.dist.rendezvous import Meeting

    address = _address_of(hosts[0])
    if node_rank == 0 and _card_of(address) is None:
        hint = "is --node-rank right? 0 is the first host of --hosts"
        raise DragomanError(f"{address} is no address of this host", hint)
    if interface is not None:
        _check_card(interface)
        for name in CARD_VARIABLES:
            os.environ.pop(name, None)  # what is typed now counts more than what was set once
    cards = dict.fromkeys(CARD_VARIABLES, interface or card_towards(address))
    threads = str(threads_per_worker(num_workers))
    name = hosts[node_rank].name
    with _environment(OMP_NUM_THREADS=threads, DRAGOMAN_HOST=name, **cards):
        meeting = Meeting(node_rank, tuple(host.name for host in hosts), address, port)
        return _judge(run_node(command, num_workers, meeting), name).exit_code


def _judge(failures: dict[int, int], host: str) -> Outcome:
    """Of all ranks of this host; who was killed could not say so itself."""
    from dragoman.dist.elastic import SIGNALLED

    if SIGNALLED in failures:
        return Outcome(failures[SIGNALLED], "told by a signal to leave", is_asked=True)
    outcome = judge([Exit(host, rank, code) for rank, code in failures.items()], is_stopped=False)
    if outcome.cause is not None and outcome.cause.code < 0:
        sys.stderr.write(f"{outcome.reason}\n")
    return outcome


def _address_of(host: Host) -> str:
    """Of the first host, as every host must see it."""
    try:
        address = host.address or socket.gethostbyname(host.name)
    except OSError:
        raise DragomanError(f"{host.name} does not resolve here", "give its address in hosts.toml") from None
    if ipaddress.ip_address(address).is_loopback:
        raise DragomanError(
            f"{host.name} is {address} here, which other hosts cannot reach", "give its address in hosts.toml"
        )
    return address


def card_towards(address: str) -> str:
    """The network card that has the address, or over which it is reached."""
    own = _card_of(address)
    if own is not None:
        return own
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # sends nothing: it asks for the route
        except OSError as error:
            problem = f"there is no way to {address} from here: {error.strerror}"
            raise DragomanError(problem, "check the first host's address") from None
        card = _card_of(probe.getsockname()[0])
    assert card is not None, "the route starts at an address of ours"
    return card


def _check_card(name: str) -> None:
    known = psutil.net_if_addrs()
    if name not in known:
        raise DragomanError(f"there is no network card {name} here", f"there are {', '.join(sorted(known))}")


def _card_of(address: str) -> str | None:
    cards = psutil.net_if_addrs().items()
    return next((card for card, entries in cards if any(entry.address == address for entry in entries)), None)


@contextmanager
def _environment(**defaults: str) -> Generator[None]:
    """Variables the workers inherit; what the user set stays, and this process has its own back afterwards."""
    added = {name: value for name, value in defaults.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def threads_per_worker(num_workers: int) -> int:
    """The cores shared out: more threads than cores make every worker slower."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // num_workers)


def _run_alone(command: Sequence[str]) -> int:
    """One worker is a plain child: the command line stays light."""
    process = subprocess.Popen([sys.executable, *command])

    def pass_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in WARNINGS}
    try:
        code = _wait(process)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return PREEMPTED if -code in WARNINGS else code  # it was caught before it could listen


@contextmanager
def leaving_when_warned() -> Generator[None]:
    """Until somebody who can save listens: a warning ends this command, and what it has begun is taken back."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        sys.exit(PREEMPTED)

    before = {number: signal.signal(number, leave) for number in WARNINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(process: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The terminal sent Ctrl-C to the worker too; it saves and leaves, and we wait for that.
            continue


def _loopback() -> str:
    return "lo0" if sys.platform == "darwin" else "lo"
