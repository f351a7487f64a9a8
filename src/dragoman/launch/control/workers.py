"""The workers of this host as its agent sees them: one child that runs torchrun's agent, and whatever it leaves."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import psutil

from dragoman.launch.json_lines import json_object

NODE = "dragoman.dist.node"
STOP_SECONDS = 9.0  # the child gives the workers 7 s to save, then kills them
ORPHAN_SECONDS = 7.0
KILL_SECONDS = 3.0
PR_SET_CHILD_SUBREAPER = 36

Lines = list[list[Any]]  # [rank, text]
# To save and leave: because a person asks, or a machine; or to begin again, with time to end the step.
Word = Literal["stop", "leave", "pause"]


class Workers:
    """Started when made. `on_lines` gets their output, `on_end` is called once; both from another thread."""

    def __init__(
        self,
        node: dict[str, Any],
        environment: dict[str, str],
        on_lines: Callable[[Lines], None],
        on_end: Callable[[], None],
    ) -> None:
        fd = node["listen_fd"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", NODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            pass_fds=() if fd is None else (fd,),
            start_new_session=True,
        )
        self._result: dict[str, Any] = {}
        self._is_done = threading.Event()
        self._on_lines = on_lines
        self._on_end = on_end
        self._say(json.dumps(node))
        threading.Thread(target=self._read, name="workers", daemon=True).start()

    def tell(self, word: Word) -> None:
        """They save and leave; the child sees to it that they do."""
        self._say(word)

    def report(self) -> dict[str, Any] | None:
        """How they ended; None while they run."""
        if not self._is_done.is_set():
            return None
        code = self._process.wait()
        return {
            "exits": self._result.get("exits", {}),
            "refused": self._result.get("refused"),
            # A child that said nothing was killed itself.
            "code": 0 if self._result else code or 1,
        }

    def end(self) -> None:
        """They save and leave, or are killed."""
        self.tell("leave")
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(word.encode() + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            with self._process.stdout as lines:
                for line in lines:
                    self._take(line)
        finally:
            # Whatever went wrong here: who waits for the end of the workers hears of it.
            self._process.wait()
            self._is_done.set()
            self._on_end()

    def _take(self, line: bytes) -> None:
        message = json_object(line)
        if message is None:
            # Printed by some library before the child took its output away from it.
            sys.stderr.write(line.decode(errors="replace"))
        elif "lines" in message:
            self._on_lines(message["lines"])
        else:
            self._result = message


def adopt_orphans() -> None:
    """Ask Linux for the processes whose parents died below us: so none of them escapes `end_children`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_children(patience_seconds: float = ORPHAN_SECONDS) -> None:
    """Whatever this process still has below it: time to save, then SIGKILL."""
    left = psutil.Process().children(recursive=True)
    for process in left:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGTERM if patience_seconds else signal.SIGKILL)
    deadline = time.monotonic() + patience_seconds
    while left and time.monotonic() < deadline:
        left = _still_there(left)
        time.sleep(0.05)
    for process in left:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)
    psutil.wait_procs(left, timeout=KILL_SECONDS)


def _still_there(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that run; an adopted one that has ended is taken off the list of processes by waiting for it."""
    running: list[psutil.Process] = []
    for process in processes:
        with suppress(OSError):
            os.waitpid(process.pid, os.WNOHANG)
        with suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    return running
