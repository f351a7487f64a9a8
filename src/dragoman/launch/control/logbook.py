"""`hosts.log`: every line of every worker as `[host:rank] line`, and the controller's own. Keeps the last of each."""

import threading
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path

from dragoman.run.control import hosts_log_path
from dragoman.run.folder import RunFolder

NUM_KEPT = 12


class Logbook:
    """Appends to the file at once; a disk that is full does not end the run."""

    def __init__(self, folder: RunFolder) -> None:
        self._path: Path = hosts_log_path(folder)
        self._lock = threading.Lock()
        self._last: defaultdict[int, deque[str]] = defaultdict(lambda: deque(maxlen=NUM_KEPT))

    def say(self, text: str) -> None:
        """The controller's word."""
        self._write(f"[controller] {line}" for line in text.splitlines())

    def add(self, host: str, lines: Iterable[tuple[int, str]]) -> None:
        marked: list[str] = []
        for rank, text in lines:
            self._last[rank].append(text)
            marked.append(f"[{host}:{rank}] {text}")
        self._write(marked)

    def last_lines(self, rank: int) -> list[str]:
        """What a rank said last."""
        return list(self._last[rank])

    def _write(self, lines: Iterable[str]) -> None:
        data = "".join(f"{line}\n" for line in lines)
        try:
            with self._lock, self._path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(data)
        except OSError:
            pass
