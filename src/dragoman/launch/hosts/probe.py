"""Does a connection between two hosts work, and how fast is it? Runs on the hosts; plain sockets, no torch.

One side listens on one address; the other connects, shows a token and sends. The receiver counts: a sender only knows
what it put into its own buffers.
"""

import contextlib
import hmac
import json
import secrets
import selectors
import socket
import struct
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

CONNECT_SECONDS = 1.5
WARM_UP_SECONDS = 0.05  # buckets of a shaped link and a slow start are over then
MEASURE_SECONDS = 0.25
LIFE_SECONDS = 60.0  # a listener that nobody closes ends by itself
BLOCK_BYTES = 1 << 20
TOKEN_BYTES = 16


class Listener:
    """Listens on one address and an ephemeral port until it is closed; measures whoever shows the token."""

    def __init__(self, address: str) -> None:
        self.token = secrets.token_hex(TOKEN_BYTES // 2)
        self._socket = socket.create_server((address, 0))
        self._socket.settimeout(LIFE_SECONDS)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # Closing alone would leave the thread inside `accept`.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        # Closed with this thread: a port that nobody serves must not take connections.
        with contextlib.suppress(OSError), self._socket:
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._measure, args=(connection,), daemon=True).start()

    def _measure(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(CONNECT_SECONDS + MEASURE_SECONDS)
            if not hmac.compare_digest(connection.recv(TOKEN_BYTES, socket.MSG_WAITALL), self.token.encode()):
                return
            answer = json.dumps({"bytes_per_second": _receive_rate(connection)}).encode() + b"\n"
            connection.sendall(answer)
            buffer = bytearray(BLOCK_BYTES)
            while connection.recv_into(buffer):  # until the sender, who may have much under way, has read the answer
                pass


def _receive_rate(connection: socket.socket) -> float:
    buffer = bytearray(BLOCK_BYTES)
    connection.recv_into(buffer)
    start = time.monotonic() + WARM_UP_SECONDS
    end = start + MEASURE_SECONDS
    num_bytes = 0
    while (now := time.monotonic()) < end:
        received = connection.recv_into(buffer)
        if not received:
            break
        num_bytes += received if now >= start else 0
    return num_bytes / max(1e-3, time.monotonic() - start)


def send_probe(address: str, port: int, token: str) -> dict[str, Any]:
    """Connect and send; the rate that arrived, or what went wrong."""
    try:
        with socket.create_connection((address, port), CONNECT_SECONDS) as connection:
            connection.sendall(token.encode())
            return _send_until_answered(connection)
    except TimeoutError:
        return {"problem": "no answer"}
    except (OSError, ValueError) as error:
        return {"problem": getattr(error, "strerror", None) or str(error)}


def _send_until_answered(connection: socket.socket) -> dict[str, Any]:
    block = bytes(BLOCK_BYTES)
    deadline = time.monotonic() + WARM_UP_SECONDS + MEASURE_SECONDS + CONNECT_SECONDS
    connection.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while time.monotonic() < deadline:
            for _, events in selector.select(deadline - time.monotonic()):
                if events & selectors.EVENT_READ:
                    # What is still in the buffer would only burden the link for the next measurement.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    answer = connection.recv(256)
                    return json.loads(answer) if answer else {"problem": "another program answered"}
                connection.send(block)
    return {"problem": "no answer"}


@contextmanager
def probe_ops() -> Generator[dict[str, Any]]:
    """The ops of a session that probe; whatever listens is closed with it."""
    listeners: list[Listener] = []

    def listen(addresses: list[str]) -> list[dict[str, Any]]:
        return [_try_listening(address, listeners) for address in addresses]

    def stop_listening() -> None:
        for listener in listeners:
            listener.close()
        listeners.clear()

    try:
        yield {"listen": listen, "stop_listening": stop_listening, "send_probe": send_probe}
    finally:
        stop_listening()


def _try_listening(address: str, listeners: list[Listener]) -> dict[str, Any]:
    try:
        listeners.append(Listener(address))
    except OSError as error:
        return {"problem": error.strerror or str(error)}
    return {"port": listeners[-1].port, "token": listeners[-1].token}
