"""Progress bars for bytes on their way, one per host; quiet where nobody looks and for what takes a moment."""

import threading
import time

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from dragoman.launch.copying.transfer import Advance

QUIET_SECONDS = 1.0


class Bars:
    """Bars on stderr, shown only in a terminal. `add` gives the function that moves a bar on, from any thread."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._is_shown = console.is_terminal
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def __enter__(self) -> "Bars":
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def add(self, name: str, num_bytes: int) -> Advance:
        task = self._progress.add_task(name, total=num_bytes)

        def advance(more_bytes: int) -> None:
            if not self._is_shown:
                return
            self._progress.advance(task, more_bytes)
            with self._lock:
                if not self._progress.live.is_started and time.monotonic() - self._start > QUIET_SECONDS:
                    self._progress.start()

        return advance
