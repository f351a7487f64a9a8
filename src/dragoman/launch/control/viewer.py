"""Looks at a run on several hosts, from its first host or through ssh. Only looks: closing it changes nothing."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch.control.run_ops import RUN_OPS
from dragoman.launch.hosts.hosts import Host, read_remote
from dragoman.launch.hosts.session import HostSession
from dragoman.launch.hosts.ssh import UnreachableError
from dragoman.run.control import WARNINGS

WAIT_SECONDS = 1.0
STOP_SECONDS = 25.0
AGAIN_SECONDS = 30.0

Answer = dict[str, Any]
Say = Callable[[str], None]


class Place:
    """Where a run is: here, or on a host. A connection that breaks is made again for a while."""

    def __init__(
        self, run: str, host: Host | None = None, session: HostSession | None = None, is_here: bool = False
    ) -> None:
        self.run = run
        self._is_here = is_here or (host is None and session is None)
        self._host = session.host if session is not None else host
        self._session = session
        self._is_ours = session is None
        self._has_answered = session is not None

    @property
    def name(self) -> str:
        """As `attach` and `stop` take it."""
        return self.run if self._is_here or self._host is None else f"{self._host.target}:{self.run}"

    def ask(self, op: str, timeout_seconds: float = 30.0, **arguments: Any) -> Answer:
        if self._host is None:
            return RUN_OPS[op](run=self.run, **arguments)
        deadline = time.monotonic() + AGAIN_SECONDS
        while True:
            try:
                session = self._connected(self._host)
                answer = session.call(op, timeout_seconds=timeout_seconds, run=self.run, **arguments)
            except UnreachableError:
                self.close()
                # A host that never answered is misspelt or refuses us: that is said at once.
                if not self._has_answered or time.monotonic() >= deadline:
                    raise
                time.sleep(1.0)
            else:
                self._has_answered = True
                return answer

    def close(self) -> None:
        if self._session is not None and self._is_ours:
            self._session.close()
        self._session, self._is_ours = None, True

    def _connected(self, host: Host) -> HostSession:
        if self._session is None:
            # As a `with` block would: one that cannot be opened is closed, and its error names the host.
            self._session = HostSession(host).__enter__()
        return self._session


@contextmanager
def open_place(run: str, hosts: str | None = None) -> Generator[Place]:
    """RUN or HOST:RUN."""
    remote = read_remote(run, hosts)
    place = Place(run) if remote is None else Place(remote[1], remote[0])
    try:
        yield place
    finally:
        place.close()


def follow(place: Place, say: Say, num_last: int, offset: int | None = None, is_owner: bool = False) -> int:
    """Show the log until the run ends, and give its exit code. Ctrl-C leaves, or asks where there is a terminal.

    A scheduler that warns the command that started the run (`is_owner`) means the run.
    """
    with _noted(signal.SIGINT) as interrupted, _noted(*(WARNINGS if is_owner else ())) as warned:
        while True:
            answer = place.ask("look", offset=offset, num_last=num_last, wait_seconds=WAIT_SECONDS)
            offset = answer["offset"]
            if answer["text"]:
                sys.stdout.write(answer["text"])
                sys.stdout.flush()
            elif not answer["is_alive"]:
                return _last_word(answer, say)
            elif answer["question"] is not None and sys.stdin.isatty():
                place.ask("answer_run", is_yes=agrees(answer["question"]))
            if warned.is_set():
                warned.clear()
                say("told to leave: the workers save first")
                _stop_if_running(place, offset, is_preempted=True)
            if interrupted.is_set():
                interrupted.clear()
                if not _wants_stop():
                    say(f"detached: the run goes on; dragoman attach {place.name} shows it again")
                    return 0
                say("stopping: the workers save and leave")
                _stop_if_running(place, offset)


def agrees(question: str) -> bool:
    """Ask on the terminal; only a clear yes is one."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        return False
    finally:
        signal.signal(signal.SIGINT, handler)


def _stop_if_running(place: Place, offset: int | None, is_preempted: bool = False) -> None:
    """The run may have ended while the question stood on the screen: then there are only last lines to show."""
    try:
        stop(place, is_now=False, is_preempted=is_preempted)
    except UnreachableError:
        raise
    except DragomanError:
        answer = place.ask("look", offset=offset, num_last=0)
        if answer["is_alive"] and answer["state"] != "ended":
            raise


def _last_word(answer: Answer, say: Say) -> int:
    if answer["state"] == "ended":
        return int(answer["exit_code"])
    say("the controller of this run was killed, and the workers ended with it; the same command goes on from there")
    return 1


@contextmanager
def _noted(*numbers: int) -> Generator[threading.Event]:
    """Signals as a flag: an exception would tear a question to the host in two."""
    noted = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        noted.set()

    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wants_stop() -> bool:
    """Ask on a terminal; elsewhere, and after another Ctrl-C, the answer is no."""
    if not sys.stdin.isatty():
        return False
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stderr.write("\ndetach (default) or stop? [d/s] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("s", "stop")
    except KeyboardInterrupt:
        return False
    finally:
        signal.signal(signal.SIGINT, handler)


def stop(place: Place, is_now: bool, is_preempted: bool = False) -> Answer:
    return place.ask("stop_run", timeout_seconds=STOP_SECONDS, is_now=is_now, is_preempted=is_preempted)
