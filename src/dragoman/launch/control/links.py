"""The controller's connections to its host agents: who has joined, and one queue of everything that happens."""

import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from dragoman.launch.control.channel import Channel, ChannelError, Message, SilentError, greet, keep_alive
from dragoman.launch.hosts.members import Member

POLL_SECONDS = 0.2
# A person wants the run to stop, or at once; a machine that it runs on wants it to leave.
Asked = Literal["stop", "kill", "preempt"]
Order = Literal[Asked, "admit"]  # a host wants to take part
Kind = Literal["joined", "message", "lost", Asked]


@dataclass(frozen=True)
class Event:
    """Something that happened: to a host, or a word from outside."""

    kind: Kind
    host: str = ""
    message: Message | None = None
    text: str = ""
    is_silent: bool = False  # lost without a word


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

    @property
    def present(self) -> set[str]:
        """Hosts whose agents are connected."""
        return self._names & set(self._channels)

    def await_hosts(self, is_enough: Callable[[set[str]], bool], limit_seconds: float) -> Asked | None:
        """Wait until those that are present are enough, or the time is over; the order that ended the wait."""
        deadline = time.monotonic() + limit_seconds
        while not is_enough(self.present) and (left := deadline - time.monotonic()) > 0:
            event = self.next_event(min(left, POLL_SECONDS))
            if event is not None and event.kind in ("stop", "kill", "preempt"):
                return event.kind
        return None

    def send(self, host: str, message: Message) -> None:
        """A channel that is broken is noticed by the thread that reads it."""
        channel = self._channels.get(host)
        if channel is not None:
            with suppress(ChannelError):
                channel.send(message)

    def drop(self, host: str) -> None:
        """Let go of one that does not do what it is told: its workers end with the connection, and it may join anew."""
        channel = self._channels.get(host)
        if channel is not None:
            channel.close()

    def bar(self, host: str) -> None:
        """Let go of one, and do not let it in again."""
        self._names.discard(host)
        self.send(host, {"type": "leave"})
        self.drop(host)

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
        if host not in self._names:
            with suppress(ChannelError):
                channel.send({"type": "leave"})
            channel.close()
            return
        # One that comes back before its loss is noticed is not let in yet; it calls again.
        if self._channels.setdefault(host, channel) is not channel:
            channel.close()
            return
        threading.Thread(target=keep_alive, args=(channel, self._closing), daemon=True).start()
        self.events.put(Event("joined", host))
        try:
            for message in channel.messages():
                is_order = message["type"] == "preempted"
                self.events.put(Event("preempt" if is_order else "message", host, message))
        except ChannelError as error:
            # In this order: whoever hears that it joined again has heard before that it was lost.
            self.events.put(Event("lost", host, text=str(error), is_silent=isinstance(error, SilentError)))
            del self._channels[host]
            channel.close()
