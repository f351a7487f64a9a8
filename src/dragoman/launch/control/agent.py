"""The host agent: one per host, detached. It does what the controller says and ends with it; no torch in here."""

import contextlib
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from dragoman.launch.control.channel import (
    RETURN_SECONDS,
    Channel,
    ChannelError,
    Message,
    RefusedError,
    call,
    keep_alive,
)
from dragoman.launch.control.detached import read_task
from dragoman.launch.control.gathering import Outgoing
from dragoman.launch.control.links import Order
from dragoman.launch.control.workers import Word, Workers, adopt_orphans, end_children
from dragoman.run.control import PREEMPTED, WARNINGS, read_control
from dragoman.run.folder import RunFolder, create_run_folder, is_held, lock_file

CALL_SECONDS = 30.0
CALL_PAUSE_SECONDS = 0.5
LOCK_SECONDS = 1.0
GATHER_SECONDS = 1.0
WORDS: Mapping[Order, Word] = {"stop": "stop", "preempt": "leave", "admit": "pause"}


class HostAgent:
    """A connection to the controller and, while an attempt runs, the workers of this host."""

    def __init__(self, channel: Channel, task: dict[str, Any]) -> None:
        self._channel = channel
        self._task = task
        self._folder = RunFolder(Path(task["run"]))
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._listener: socket.socket | None = None
        self._workers: Workers | None = None
        self._outgoing: Outgoing | None = None
        self._attempt = 0

    def serve(self) -> bool:
        """Until the controller lets go, or is lost (False); then the workers are ended and nothing is left."""
        threading.Thread(target=self._receive, name="receive", daemon=True).start()
        try:
            while True:
                message = self._next()
                if message["type"] in ("leave", "lost"):
                    return message["type"] == "leave"
                self._handle(message)
                self._look_after_workers()
        except ChannelError:
            return False
        finally:
            if self._workers is not None:
                self._workers.end()
            end_children()

    def take_warning(self, _number: int, _frame: FrameType | None) -> None:
        """This machine wants us to leave: the controller tells all hosts, so that all save. A second time is final."""
        self._inbox.put({"type": "warned"})
        for number in WARNINGS:
            signal.signal(number, _leave)

    def _receive(self) -> None:
        try:
            for message in self._channel.messages():
                self._inbox.put(message)
                if message["type"] == "leave":
                    return
        except ChannelError as error:
            sys.stderr.write(f"the controller is lost: {error}\n")
            self._inbox.put({"type": "lost"})

    def _next(self) -> Message:
        try:
            return self._inbox.get(timeout=GATHER_SECONDS)
        except queue.Empty:
            return {"type": "nothing"}

    def _handle(self, message: Message) -> None:
        match message["type"]:
            case "prepare":
                self._prepare(message["attempt"])
            case "start":
                self._start(message)
            case "stop" if message["order"] == "kill":
                end_children(patience_seconds=0.0)
            case "stop" if self._workers is not None:
                self._workers.tell(WORDS[message["order"]])
            case "warned":
                self._channel.send({"type": "preempted"})
            case _:
                pass  # to look after the workers, or word from a later version

    def _prepare(self, attempt: int) -> None:
        """The store's socket, bound before torch is loaded: all hosts know its port at once."""
        self._attempt = attempt
        address = self._task["address"]
        try:
            self._listener = socket.create_server((address, 0), backlog=1024)
        except OSError as error:
            refused = [f"cannot listen on {address}: {error.strerror}", "is that an address of this host?"]
            self._channel.send({"type": "ended", "attempt": attempt, "exits": {}, "refused": refused, "code": 1})
            return
        port = self._listener.getsockname()[1]
        self._channel.send({"type": "listening", "attempt": attempt, "port": port})

    def _start(self, message: Message) -> None:
        self._attempt = message["attempt"]
        if message["gather"] is not None and not self._is_controllers_folder(message["controller"]):
            self._outgoing = Outgoing(self._folder, message["gather"])
        fd = None if self._listener is None else self._listener.fileno()
        node = {**message["node"], "listen_fd": fd}
        self._workers = Workers(node, self._environment(message["node"]["num_workers"]), self._send_lines, self._wake)
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _is_controllers_folder(self, controller: list[float]) -> bool:
        """A disk that both hosts see needs no gathering. Numbers of processes repeat; their starts with them do not."""
        control = read_control(self._folder)
        return control is not None and [control.pid, control.pid_started] == controller

    def _environment(self, num_workers: int) -> dict[str, str]:
        from dragoman.launch.local import threads_per_worker

        interface = self._task["interface"]
        return {
            "OMP_NUM_THREADS": str(threads_per_worker(num_workers)),
            "TORCH_CPP_LOG_LEVEL": "ERROR",
            **os.environ,
            **self._task["environment"],
            "DRAGOMAN_HOST": self._task["name"],
            "GLOO_SOCKET_IFNAME": interface,
            "NCCL_SOCKET_IFNAME": interface,
            "TP_SOCKET_IFNAME": interface,
        }

    def _send_lines(self, lines: list[list[Any]]) -> None:
        with contextlib.suppress(ChannelError):
            self._channel.send({"type": "lines", "lines": lines})

    def _wake(self) -> None:
        self._inbox.put({"type": "ended"})

    def _look_after_workers(self) -> None:
        """Send new records; report the end once everything before it has been sent."""
        workers = self._workers
        report = None if workers is None else workers.report()
        if self._outgoing is not None:
            for news in self._outgoing.news():
                self._channel.send(news)
        if report is not None:
            self._workers = None
            end_children()
            self._channel.send({"type": "ended", "attempt": self._attempt, **report})


def join(task: dict[str, Any], limit_seconds: float, is_first: bool) -> Channel:
    """Call the controller until it answers. One that listened before and does not now is gone for good."""
    deadline = time.monotonic() + limit_seconds
    while True:
        try:
            return call(task["controller_address"], task["controller_port"], task["name"], task["token"])
        except ChannelError as error:
            is_over = not is_first and (isinstance(error, RefusedError) or is_held(agent_lock(task)))
            if is_over or time.monotonic() >= deadline:
                raise
            time.sleep(CALL_PAUSE_SECONDS)


def agent_lock(task: dict[str, Any]) -> Path:
    """Held by the agent that takes part in the run on this host; one that only calls lets others have it."""
    return Path(task["run"]) / f".agent.{task['name']}.lock"


def main() -> int:
    """`python -m dragoman.launch.control.agent`, its task on the input."""
    task = read_task()
    adopt_orphans()
    # A closed terminal is no reason to end; only the controller is.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in WARNINGS:
        signal.signal(number, _leave)
    create_run_folder(task["run"])
    limit_seconds, is_first = CALL_SECONDS, True
    while True:
        try:
            channel = join(task, limit_seconds, is_first)
        except ChannelError as error:
            sys.stderr.write(f"cannot reach the controller: {error}\n")
            return 1
        if take_part(channel, task):
            return 0
        limit_seconds, is_first = RETURN_SECONDS, False
        time.sleep(CALL_PAUSE_SECONDS)


def take_part(channel: Channel, task: dict[str, Any]) -> bool:
    """From here on this is the run's agent on this host; False if the controller was lost, which may come back."""
    stop = threading.Event()
    threading.Thread(target=keep_alive, args=(channel, stop), name="alive", daemon=True).start()
    try:
        held = lock_file(agent_lock(task), LOCK_SECONDS)
        if held is None:
            sys.stderr.write("another agent of this run has taken over here\n")
            return True
        with held:
            agent = HostAgent(channel, task)
            for number in WARNINGS:
                signal.signal(number, agent.take_warning)
            return agent.serve()
    finally:
        for number in WARNINGS:
            signal.signal(number, _leave)
        stop.set()
        channel.close()


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(PREEMPTED)


if __name__ == "__main__":
    sys.exit(main())
