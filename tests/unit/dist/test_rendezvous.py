"""Where ranks meet: one address, and who is missing is named."""

import socket
import subprocess
import sys
import threading

import psutil
import pytest

from dragoman.dist.failures import is_lost_peer
from dragoman.dist.rendezvous import (
    FixedRendezvous,
    Meeting,
    await_all,
    connect_store,
    join_ranks,
    listen_store,
)
from dragoman.errors import DragomanError


def listening() -> set[str]:
    return {c.laddr.ip for c in psutil.Process().net_connections("tcp") if c.status == psutil.CONN_LISTEN}


def test_a_store_listens_on_its_address_only():
    before = listening()
    store = listen_store("127.0.0.2", 0)
    assert listening() - before == {"127.0.0.2"}
    connect_store("127.0.0.2", store.port, 5).set("key", "value")
    assert store.get("key") == b"value"


def test_an_address_that_is_not_ours_is_one_line():
    with pytest.raises(DragomanError, match=r"cannot listen on 192\.0\.2\.1 port 0"):
        listen_store("192.0.2.1", 0)


def test_nobody_there_is_one_line_with_the_address():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(DragomanError, match=rf"127\.0\.0\.1 port {port} could not be reached for 0 s"):
            connect_store("127.0.0.1", port, 0.3)


def test_who_did_not_come_is_named():
    store = listen_store("127.0.0.1", 0)
    others = [threading.Thread(target=_come, args=(store.port, number)) for number in (1, 2)]
    for thread in others:
        thread.start()
    with pytest.raises(DragomanError, match=r"^rank 3, rank 4 did not join within 1 s") as caught:
        await_all(store, 0, [f"rank {number}" for number in range(5)], 1.0, "joined")
    assert caught.value.hint
    for thread in others:
        thread.join()


def _come(port: int, number: int) -> None:
    store = connect_store("127.0.0.1", port, 5)
    with pytest.raises(DragomanError):
        await_all(store, number, [f"rank {number}" for number in range(5)], 0.9, "joined")


def test_ranks_join_without_torchrun(monkeypatch):
    """As under a scheduler: rank 0 listens, on the master's address only."""
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.setenv("DRAGOMAN_JOIN_SECONDS", "10")
    before = listening()
    stores = {}
    threads = [threading.Thread(target=lambda rank=rank: stores.update({rank: join_ranks(rank, 2)})) for rank in (1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stores[0].set("key", "value")
    assert stores[1].get("key") == b"value"
    assert listening() - before <= {"127.0.0.1"}


FIRST_HOST = """
import sys
from dragoman.dist.rendezvous import listen_store
store = listen_store("127.0.0.1", 0)
print(store.port, flush=True)
sys.stdin.readline()
"""


def test_a_first_host_that_goes_away_is_one_line(monkeypatch):
    monkeypatch.setenv("DRAGOMAN_JOIN_SECONDS", "20")
    with subprocess.Popen(
        [sys.executable, "-c", FIRST_HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        port = int(first.stdout.readline())
        refusals = []
        handler = FixedRendezvous("run", Meeting(1, ("a", "b"), "127.0.0.1", port), refusals.append)
        threading.Timer(0.5, first.kill).start()
        with pytest.raises(DragomanError, match="the first host is gone"):
            handler.next_rendezvous()
    assert [error.message for error in refusals] == ["the first host is gone"]


@pytest.mark.parametrize(
    ("error", "is_echo"),
    [
        (RuntimeError("[gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:1234"), True),
        (RuntimeError("Application timeout caused pair closure"), True),
        (RuntimeError("shape mismatch"), False),
        (ValueError("Connection closed by peer"), False),
    ],
)
def test_the_echo_of_another_ranks_end_is_known(error, is_echo):
    assert is_lost_peer(error) == is_echo
