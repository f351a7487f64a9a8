"""The controller's connections to its host agents: who has joined, and one queue of everything that happens."""

import queue
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from dragoman.launch.control.channel import Channel, ChannelError, Message, greet, keep_alive
from dragoman.launch.hosts.members import Member

# A person wants the run to stop, or at once; a machine that it runs on wants it to leave.
Order = Literal["stop", "kill", "preempt"]
Kind = Literal["joined", "message", "lost", "stop", "kill", "preempt"]


@dataclass(frozen=True)
class Event:
    """Something that happened: to a host, or a word from outside."""

    kind: Kind
    host: str = ""
    message: Message | None = None
    text: str = ""


class Links:
    """Listens on one address only. Threads fill `events`; the controller's one thread empties it."""

    def __init__(self, members: Sequence[Member], token: str) -> None:
        # Simple: its put may be called by a signal handler, whatever the main thread is doing with it.
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._names = {member.name for member in members}
        self._token = token
        self._channels: dict[str, Channel] = {}
        self._closing = threading.Event()
        self._listener = socket.create_server((members[0].address, 0), backlog=len(members) + 8)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def next_event(self, timeout_seconds: float) -> Event | None:
        try:
            return self.events.get(timeout=max(0.0, timeout_seconds))
        except queue.Empty:
            return None

    def await_all(self, limit_seconds: float) -> tuple[list[str], Order | None]:
        """Wait until every host has joined; the names of those that did not, and the order that ended the wait."""
        deadline = time.monotonic() + limit_seconds
        missing = set(self._names)
        while missing:
            event = self.next_event(deadline - time.monotonic())
            if event is None:
                break
            if event.kind in ("stop", "kill", "preempt"):
                return sorted(missing), event.kind
            if event.kind == "joined":
                missing.discard(event.host)
            elif event.kind == "lost":
                missing.add(event.host)
        return sorted(missing), None

    def send(self, host: str, message: Message) -> None:
        """A channel that is broken is noticed by the thread that reads it."""
        channel = self._channels.get(host)
        if channel is not None:
            with suppress(ChannelError):
                channel.send(message)

    def close(self) -> None:
        """Let the agents go: they end with the connection."""
        self._closing.set()
        self._listener.close()
        for host, channel in list(self._channels.items()):
            self.send(host, {"type": "leave"})
            channel.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            channel, host = greet(connection, self._token)
        except ChannelError:
            return
        if host not in self._names or host in self._channels:
            channel.close()
            return
        self._channels[host] = channel
        threading.Thread(target=keep_alive, args=(channel, self._closing), daemon=True).start()
        self.events.put(Event("joined", host))
        try:
            for message in channel.messages():
                is_order = message["type"] == "preempted"
                self.events.put(Event("preempt" if is_order else "message", host, message))
        except ChannelError as error:
            self.events.put(Event("lost", host, text=str(error)))
