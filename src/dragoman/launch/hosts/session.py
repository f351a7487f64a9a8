"""One ssh connection to a host that answers questions: JSON lines over the standard streams of a Python there.

Request `{"op": name, ...}`, answer `{"ok": true, "value": ...}` or `{"ok": false, "message": ..., "hint": ...}`. An
empty line says that the near side is alive: ssh leaves the far side of a dead machine running. Knows how to ask and
to answer; knows nothing of what is asked.
"""

import json
import os
import selectors
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

from dragoman.errors import DragomanError
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.ssh import (
    END_SECONDS,
    Tail,
    UnreachableError,
    end_ssh,
    explain_failure,
    python_command,
    start_ssh,
)

OPEN_SECONDS = 25.0  # connecting has 5 s of its own; the rest is a cold Python on a slow disk
CALL_SECONDS = 30.0
ALIVE_SECONDS = 10.0
SILENT_SECONDS = 60.0  # from a near side that is gone
HELLO = b'{"dragoman": "ready"}'  # whatever a login shell prints comes before it
FAR_SIDE = ("-m", "dragoman.commands.on_host")
_BLOCK_BYTES = 1 << 16

Ops = Mapping[str, Callable[..., Any]]


class HostSession:
    """A connection to one host, to be used in a `with` block. Calls of several threads wait for each other."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.failure: DragomanError | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._complaints: Tail | None = None
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._is_closed = threading.Event()

    def __enter__(self) -> "HostSession":
        try:
            self.open()
        except DragomanError as error:
            self.close()
            raise self._named(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect and wait until the other side is ready; what prevents it is kept and raised."""
        try:
            self._process = start_ssh(self.host, python_command(self.host, FAR_SIDE))
        except DragomanError as error:
            raise self._fail(error) from None
        self._complaints = Tail(self._process)
        deadline = time.monotonic() + OPEN_SECONDS
        while self._read_line(deadline, "start") != HELLO:
            pass
        threading.Thread(target=self._keep_alive, name=f"alive {self.host.name}", daemon=True).start()

    def call(self, op: str, *, timeout_seconds: float = CALL_SECONDS, **arguments: Any) -> Any:
        """Ask, and wait for the answer; what the other side refuses is raised here with the host's name."""
        with self._lock:
            if self.failure is not None:
                raise self._named(self.failure)
            try:
                self._send(json.dumps({"op": op, **arguments}).encode() + b"\n")
                answer = json.loads(self._read_line(time.monotonic() + timeout_seconds, op))
            except DragomanError as error:
                raise self._named(error) from None
        if not answer["ok"]:
            raise self._named(DragomanError(answer["message"], answer.get("hint", "")))
        return answer["value"]

    def close(self) -> None:
        """End of input is what tells the other side to leave; an ssh client that does not follow is ended."""
        self._is_closed.set()
        process = self._process
        if process is None:
            return
        with self._writing, suppress(OSError):
            cast("Any", process.stdin).close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
        end_ssh(process)
        self._process = None
        self.failure = self.failure or DragomanError("the connection was closed")

    def _send(self, line: bytes) -> None:
        stdin = cast("Any", self._process).stdin
        try:
            with self._writing:
                stdin.write(line)
                stdin.flush()
        except OSError:
            raise self._ended() from None

    def _keep_alive(self) -> None:
        stdin = cast("Any", self._process).stdin
        # A far side that is gone, or a stream that was closed meanwhile, is the matter of whoever asks next.
        with suppress(OSError, ValueError):
            while not self._is_closed.wait(ALIVE_SECONDS):
                with self._writing:
                    stdin.write(b"\n")
                    stdin.flush()

    def _read_line(self, deadline: float, op: str) -> bytes:
        stream: Any = cast("Any", self._process).stdout
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    # A late answer would be taken for that of the next question: the session is over.
                    hint = "it is overloaded, or its disk hangs: look at it, then give the command again"
                    raise self._fail(UnreachableError(f"gave no answer to {op!r} in time", hint))
                block = os.read(stream.fileno(), _BLOCK_BYTES)
                if not block:
                    raise self._ended()
                self._buffer += block
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.strip()

    def _ended(self) -> DragomanError:
        """The other side is gone: its last words say why."""
        process = cast("subprocess.Popen[bytes]", self._process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
        stderr = cast("Tail", self._complaints).text()
        return self._fail(explain_failure(self.host, process.poll(), stderr))

    def _fail(self, error: DragomanError) -> DragomanError:
        self.failure = error
        return error

    def _named(self, error: DragomanError) -> DragomanError:
        return type(error)(f"{self.host.name}: {error.message}", error.hint)


@contextmanager
def open_sessions(hosts: Sequence[Host]) -> Generator[list[HostSession]]:
    """A session per host, opened side by side. One that failed is there too: it carries its `failure`."""
    sessions = [HostSession(host) for host in hosts]
    try:
        side_by_side([session.open for session in sessions])
        yield sessions
    finally:
        side_by_side([session.close for session in sessions])


def call_all(sessions: Sequence[HostSession], op: str, **arguments: Any) -> list[Any]:
    """The same question to every host, side by side; the answers in order. All refusals become one error."""
    return call_each(sessions, op, [arguments] * len(sessions))


def call_each(sessions: Sequence[HostSession], op: str, arguments: Sequence[Mapping[str, Any]]) -> list[Any]:
    """As `call_all`, with a host's own arguments for each."""
    asked = [
        lambda session=session, given=given: session.call(op, **given)
        for session, given in zip(sessions, arguments, strict=True)
    ]
    answers = side_by_side(asked)
    errors = [answer for answer in answers if isinstance(answer, DragomanError)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise DragomanError("\n  ".join(["several hosts failed", *(problem_line(error) for error in errors)]))
    return answers


def problem_line(error: DragomanError) -> str:
    """What is wrong and how to mend it, in one line."""
    return f"{error.message}; {error.hint}" if error.hint else error.message


def side_by_side(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Call each in a thread of its own; results in order, a DragomanError in the place of a result."""
    results: list[Any] = [None] * len(functions)
    # Daemons: after Ctrl-C nobody waits for a host that does not answer.
    threads = [
        threading.Thread(target=_keep_result, args=(results, index, function), daemon=True)
        for index, function in enumerate(functions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, DragomanError):
            raise result
    return results


def _keep_result(results: list[Any], index: int, function: Callable[[], Any]) -> None:
    try:
        results[index] = function()
    except Exception as error:  # raised again, or returned, by the thread that waits
        results[index] = error


def serve_session(ops: Ops) -> None:
    """The other side: answer until the input ends. Whatever an op prints goes to stderr, never between the lines."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    answers.write(HELLO + b"\n")
    answers.flush()
    for line in _lines(sys.stdin.fileno()):
        answers.write(json.dumps(_answer(ops, line)).encode() + b"\n")
        answers.flush()


def _lines(fd: int) -> Generator[bytes]:
    """What is asked, until the input ends or the near side has been silent for too long."""
    buffer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while selector.select(SILENT_SECONDS):
            block = os.read(fd, _BLOCK_BYTES)
            if not block:
                return
            *whole, buffer = (buffer + block).split(b"\n")
            yield from (line for line in whole if line.strip())


def _answer(ops: Ops, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
        return {"ok": True, "value": ops[request.pop("op")](**request)}
    except DragomanError as error:
        return {"ok": False, "message": error.message, "hint": error.hint}
    except Exception as error:  # it belongs to whoever asked, and the session goes on
        traceback.print_exc()
        return {"ok": False, "message": f"{type(error).__name__}: {error}", "hint": "this is a defect of Dragoman"}
