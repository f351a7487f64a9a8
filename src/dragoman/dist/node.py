"""The workers of one host, as a child of its host agent: `python -m dragoman.dist.node`.

The first line of its input says what to run. It writes JSON lines: `{"lines": [[rank, text], ...]}`, and at the end
`{"exits": {rank: code}}` or `{"refused": [message, hint]}`. A line `stop` (a person asks), `leave` (a machine) or
`pause` (to begin again soon), or the end of the input, ends the workers: so they end with the host agent, however that
ends.
"""

import contextlib
import json
import os
import selectors
import signal
import sys
import threading
import time
from typing import Any

import psutil

from dragoman.dist.elastic import run_node
from dragoman.dist.rendezvous import Meeting
from dragoman.errors import DragomanError

STOP_SECONDS = 7.0  # to save and leave
PAUSE_SECONDS = 120.0  # the same, where nobody is in a hurry
LEAVE_SECONDS = 2.0
BLOCK_BYTES = 1 << 16
POLL_SECONDS = 0.05


class Agent:
    """The host agent's end of our streams, taken away from whatever else reads or prints in this process."""

    def __init__(self) -> None:
        self.words = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self._reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._lock = threading.Lock()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)

    def emit(self, message: dict[str, Any]) -> None:
        # A host agent that was killed reads no more: what counts then is that the workers end.
        with self._lock, contextlib.suppress(OSError):
            self._reports.write(json.dumps(message) + "\n")
            self._reports.flush()


class Outputs:
    """One pipe per worker for both of its streams: lines come out whole, in order and at once."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._selector = selectors.DefaultSelector()
        self._partial: dict[int, bytes] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="outputs", daemon=True)

    def reroute(self, envs: dict[int, dict[str, str]]) -> dict[int, str]:
        """torch opens the path it is given: a descriptor has one."""
        paths = {}
        for local_rank, env in envs.items():
            read_fd, write_fd = os.pipe()
            os.set_blocking(read_fd, False)
            env["PYTHONUNBUFFERED"] = "1"
            self._selector.register(read_fd, selectors.EVENT_READ, int(env["RANK"]))
            paths[local_rank] = f"/dev/fd/{write_fd}"
        self._thread.start()
        return paths

    def close(self) -> None:
        """Pass on what the workers left behind."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()
        rest = [[rank, data.decode(errors="replace")] for rank, data in self._partial.items() if data]
        if rest:
            self._agent.emit({"lines": rest})

    def _work(self) -> None:
        while True:
            is_last = self._ending.is_set()
            lines = [line for key, _ in self._selector.select(POLL_SECONDS) for line in self._read(key)]
            if lines:
                self._agent.emit({"lines": lines})
            elif is_last:
                return

    def _read(self, key: selectors.SelectorKey) -> list[list[Any]]:
        try:
            data = os.read(key.fd, BLOCK_BYTES)
        except BlockingIOError:
            return []
        rank = key.data
        *whole, self._partial[rank] = (self._partial.get(rank, b"") + data).split(b"\n")
        return [[rank, line.decode(errors="replace").rstrip("\r")] for line in whole]


def main() -> int:
    """Run the workers and report."""
    agent = Agent()
    task = json.loads(agent.words.readline())
    done = threading.Event()
    threading.Thread(target=_watch_words, args=(agent, done), name="lifeline", daemon=True).start()
    meeting = Meeting(
        task["node_rank"], tuple(task["node_names"]), task["address"], task["port"], task.get("listen_fd")
    )
    outputs = Outputs(agent)
    try:
        exits = run_node(task["command"], task["num_workers"], meeting, outputs.reroute)
        report: dict[str, Any] = {"exits": exits}
    except DragomanError as error:
        report = {"refused": [error.message, error.hint]}
    outputs.close()
    agent.emit(report)
    done.set()
    return 0


def _watch_words(agent: Agent, done: threading.Event) -> None:
    word = agent.words.readline().strip()
    patience_seconds = PAUSE_SECONDS if word == "pause" else STOP_SECONDS
    _end_workers(signal.SIGINT if word == "stop" else signal.SIGTERM, patience_seconds)
    if not done.wait(LEAVE_SECONDS):
        # torch's agent waits for hosts that may be gone.
        os._exit(1)


def _end_workers(number: int, patience_seconds: float) -> None:
    """A signal that lets them save; then SIGKILL to each with all that it started."""
    deadline = time.monotonic() + patience_seconds
    workers = psutil.Process().children()
    for worker in workers:
        with contextlib.suppress(psutil.Error):
            worker.send_signal(number)
    while any(_is_running(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for worker in workers:
        if _is_running(worker):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.pid, signal.SIGKILL)


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


if __name__ == "__main__":
    sys.exit(main())
