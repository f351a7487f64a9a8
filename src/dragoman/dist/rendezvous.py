"""Where ranks meet: a store that listens on one address only, and waits that end with the names of who is missing.

The number of hosts is fixed before anything starts. torchrun's own meeting places listen on every card of a machine.
"""

import datetime
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch.distributed import (
    DistError,
    PrefixStore,  # pyright: ignore[reportPrivateImportUsage]
    Store,  # pyright: ignore[reportPrivateImportUsage]
    TCPStore,  # pyright: ignore[reportPrivateImportUsage]
)
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)

from dragoman.dist.limits import join_seconds
from dragoman.errors import DragomanError
from dragoman.run.control import NOT_JOINED

BACKEND = "dragoman"
# By hand, hosts are started one after the other; a cold disk may need a minute to load torch.
STORE_TIMEOUT = datetime.timedelta(minutes=10)
GREETING_SECONDS = 10.0
POLL_SECONDS = 0.1


class NotJoinedError(DragomanError):
    """The others are not there, or not yet, or the way to them is cut."""

    exit_code = NOT_JOINED


@dataclass(frozen=True)
class Meeting:
    """Who meets where: this host's number among the hosts, and the first one's address."""

    node_rank: int
    node_names: tuple[str, ...]
    address: str
    port: int
    listen_fd: int | None = None  # a socket that already listens there; the first host's alone


def listen_store(address: str, port: int, listen_fd: int | None = None) -> TCPStore:
    """A store on this address and on no other; port 0 takes any that is free."""
    if listen_fd is None:
        listen_fd = _bound_socket(address, port).detach()
    with socket.socket(fileno=os.dup(listen_fd)) as view:
        port = view.getsockname()[1]
    return TCPStore(
        address, port, is_master=True, wait_for_workers=False, timeout=STORE_TIMEOUT, master_listen_fd=listen_fd
    )


def connect_store(address: str, port: int, limit_seconds: float) -> TCPStore:
    """The first host's store, as soon as it listens."""
    deadline = time.monotonic() + limit_seconds
    # torch would try as well, but writes pages about every try that fails.
    while True:
        try:
            socket.create_connection((address, port), timeout=max(0.1, min(5.0, deadline - time.monotonic()))).close()
            break
        except OSError as error:
            if time.monotonic() >= deadline:
                raise NotJoinedError(
                    f"{address} port {port} could not be reached for {limit_seconds:.0f} s: {error.strerror or error}",
                    "is the first host started, its address right, and TCP open between the hosts?",
                ) from None
            time.sleep(POLL_SECONDS)
    greeting = datetime.timedelta(seconds=min(limit_seconds, GREETING_SECONDS))
    try:
        store = TCPStore(address, port, is_master=False, wait_for_workers=False, timeout=greeting)
    except DistError:
        raise DragomanError(
            f"what listens on {address} port {port} is not the first host's run", "take another port with --port"
        ) from None
    store.set_timeout(STORE_TIMEOUT)
    return store


def await_all(store: Store, me: int, names: Sequence[str], limit_seconds: float, key: str) -> None:
    """Say that this one is there and wait for the others; who is missing after the limit is named."""
    keys = [f"{key}/{number}" for number in range(len(names))]
    store.set(keys[me], "here")
    deadline = time.monotonic() + limit_seconds
    while not store.check(keys):
        if time.monotonic() >= deadline:
            missing = [name for name, its in zip(names, keys, strict=True) if not store.check([its])]
            if not missing:
                return
            raise NotJoinedError(
                f"{', '.join(missing)} did not join within {limit_seconds:.0f} s",
                "look at the output there: is it started, and can it reach this address?",
            )
        time.sleep(POLL_SECONDS)


def join_ranks(rank: int, size: int) -> Store:
    """The store of a worker, once all ranks are there. Who listens is torchrun's agent or, without one, rank 0."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    limit_seconds = join_seconds()
    if rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != str(True):
        store = listen_store(socket.gethostbyname(address), port)
    else:
        store = connect_store(address, port, limit_seconds)
    # The agent's store outlives a restart of the workers.
    round_store = PrefixStore(f"workers/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    await_all(round_store, rank, [f"rank {number}" for number in range(size)], limit_seconds, "joined")
    return round_store


class FixedRendezvous(RendezvousHandler):
    """torchrun's way in: the same hosts in the same order, once. Workers use this store and open no other."""

    def __init__(self, run_id: str, meeting: Meeting, refuse: Callable[[DragomanError], None]) -> None:
        self._run_id = run_id
        self._meeting = meeting
        self._refuse = refuse
        self._store: TCPStore | None = None

    def get_backend(self) -> str:
        return BACKEND

    @property
    def use_agent_store(self) -> bool:
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        try:
            return self._meet()
        except DragomanError as error:
            # torch's agent would wrap it into a report of its own; and the code of a rank is nothing for a person.
            refusal = DragomanError(error.message, error.hint)
            self._refuse(refusal)
            raise refusal from None

    def _meet(self) -> RendezvousInfo:
        meeting, limit_seconds = self._meeting, join_seconds()
        if meeting.node_rank == 0:
            self._store = listen_store(meeting.address, meeting.port, meeting.listen_fd)
        else:
            self._store = connect_store(meeting.address, meeting.port, limit_seconds)
        store = PrefixStore(self._run_id, self._store)
        names = [f"host {name}" for name in meeting.node_names]
        try:
            await_all(store, meeting.node_rank, names, limit_seconds, "nodes")
        except DistError:
            # Only here: a rank's own lost connection is an echo to the controller, and has an exit code of its own.
            raise DragomanError("the first host is gone", "look at the output there, then start all again") from None
        where = RendezvousStoreInfo(meeting.address, self._store.port)
        return RendezvousInfo(store, meeting.node_rank, len(names), where)

    def is_closed(self) -> bool:
        return False

    def set_closed(self) -> None:
        pass

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return self._run_id

    def shutdown(self) -> bool:
        return True


def _make(parameters: RendezvousParameters) -> FixedRendezvous:
    return FixedRendezvous(parameters.run_id, parameters.config["meeting"], parameters.config["refuse"])


rendezvous_handler_registry.register(BACKEND, _make)


def _bound_socket(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise DragomanError(
            f"cannot listen on {address} port {port}: {error.strerror}",
            "is it an address of this host, and the port free? --port takes another",
        ) from None
    return listener
