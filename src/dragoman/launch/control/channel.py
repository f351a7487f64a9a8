"""JSON lines over one TCP connection between two sides that know the same token. Knows nothing of what is said."""

import hmac
import json
import secrets
import socket
import threading
from collections.abc import Generator
from contextlib import suppress
from typing import Any, cast

# Both sides speak every second: so much silence means that the other side, or the way to it, is gone. A link that was
# cut for 5 s is no such case: TCP tries again 6.2 s after its first try, and what waits to be said is a second old.
SILENT_SECONDS = 9.0
ALIVE_SECONDS = 1.0
GREETING_SECONDS = 5.0
RETURN_SECONDS = 600.0  # for so long each side waits for one that may come back
MAX_LINE_BYTES = 32 << 20

Message = dict[str, Any]


class ChannelError(Exception):
    """The other side is gone, silent, or not who it should be."""


class SilentError(ChannelError):
    """Nothing was heard for too long; the connection itself never said that it ended."""


class RefusedError(ChannelError):
    """That machine answers, and nobody listens there any more."""


class Channel:
    """One connection. Any thread may send; one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._is_receiving = threading.Lock()
        connection.settimeout(SILENT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lines = connection.makefile("rb")

    def send(self, message: Message) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            with self._lock:
                self._connection.sendall(data)
        except OSError as error:
            raise ChannelError(str(error)) from None

    def receive(self) -> Message:
        """The next message; raises when there will be none."""
        try:
            with self._is_receiving:
                line = self._lines.readline(MAX_LINE_BYTES)
        except TimeoutError:
            raise SilentError(f"silent for {SILENT_SECONDS:.0f} s") from None
        except (OSError, ValueError) as error:
            raise ChannelError(str(error)) from None
        if not line.endswith(b"\n"):
            raise ChannelError("the connection was closed")
        try:
            message = json.loads(line)
        except ValueError:
            raise ChannelError("it does not speak our language") from None
        if not isinstance(message, dict):
            raise ChannelError("it does not speak our language")
        return cast("Message", message)

    def messages(self) -> Generator[Message]:
        """All messages until the channel ends, which is raised; signs of life are left out."""
        while True:
            message = self.receive()
            if message.get("type") != "alive":
                yield message

    def close(self) -> None:
        """Also for a thread that is just receiving: it sees the end."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._connection.close()
        if not self._is_receiving.locked():
            self._lines.close()

    def set_silence(self, seconds: float) -> None:
        self._connection.settimeout(seconds)


def keep_alive(channel: Channel, stop: threading.Event) -> None:
    """Say something every few seconds until told not to, or nobody listens."""
    with suppress(ChannelError):
        while not stop.wait(ALIVE_SECONDS):
            channel.send({"type": "alive"})


def greet(connection: socket.socket, token: str) -> tuple[Channel, str]:
    """The listening side: the channel and the caller's name, once both have proved that they know the token."""
    channel = Channel(connection)
    try:
        return channel, _let_in(channel, token)
    except ChannelError:
        channel.close()
        raise


def _let_in(channel: Channel, token: str) -> str:
    channel.set_silence(GREETING_SECONDS)
    ours = secrets.token_hex(16)
    channel.send({"nonce": ours})
    answer = channel.receive()
    name, theirs = str(answer.get("name")), str(answer.get("nonce"))
    if not _is_proof(answer.get("proof"), _proof(token, "agent", name, ours, theirs)):
        raise ChannelError("it does not know the token")
    channel.send({"proof": _proof(token, "controller", name, ours, theirs)})
    channel.set_silence(SILENT_SECONDS)
    return name


def call(address: str, port: int, name: str, token: str) -> Channel:
    """The calling side."""
    try:
        connection = socket.create_connection((address, port), timeout=GREETING_SECONDS)
    except OSError as error:
        kind = RefusedError if isinstance(error, ConnectionRefusedError) else ChannelError
        raise kind(f"{address} port {port}: {error.strerror or error}") from None
    channel = Channel(connection)
    try:
        _introduce(channel, name, token)
    except ChannelError:
        channel.close()
        raise
    return channel


def _introduce(channel: Channel, name: str, token: str) -> None:
    theirs, ours = str(channel.receive().get("nonce")), secrets.token_hex(16)
    channel.send({"name": name, "nonce": ours, "proof": _proof(token, "agent", name, theirs, ours)})
    answer = channel.receive()
    if not _is_proof(answer.get("proof"), _proof(token, "controller", name, theirs, ours)):
        raise ChannelError("it does not know the token")


def _proof(token: str, *parts: str) -> str:
    return hmac.new(token.encode(), _bytes("\n".join(parts)), "sha256").hexdigest()


def _is_proof(given: object, expected: str) -> bool:
    return hmac.compare_digest(_bytes(str(given)), _bytes(expected))


def _bytes(text: str) -> bytes:
    """Whatever a stranger sends: half a letter in JSON is no text, and must not raise."""
    return text.encode(errors="replace")
