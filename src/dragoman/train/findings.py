"""What is wrong with a run, said while it goes on: a process of its own looks, this one passes on what it sees."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

LOOK = "dragoman.diagnose.live"
END_SECONDS = 5.0


class Findings:
    """Started when made; `tell` gets each finding once, from another thread. Costs training nothing but a pipe."""

    def __init__(self, run: Path, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._process: subprocess.Popen[str] | None = None
        with suppress(OSError):  # no room for another process: training goes on without
            self._process = subprocess.Popen(
                [sys.executable, "-m", LOOK, str(run)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # a Ctrl-C is for the workers
            )
            threading.Thread(target=self._read, name="findings", daemon=True).start()

    def close(self) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with suppress(ValueError):
                    self._tell(json.loads(line))
