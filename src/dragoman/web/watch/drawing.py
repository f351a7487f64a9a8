"""The report of a run, drawn again and again while somebody looks, in a process of its own with low priority.

Drawing takes a second or, for a long run, several: the longer it takes, the rarer it is done.
"""

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

LEAST_SECONDS = 15.0
# So much rest per second of computing keeps drawing below 1.3 % of a core.
REST = 80.0
MOST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Body:
    """What stands between `<main>` and its end. `number` counts drawings."""

    number: int = 0
    html: str = ""
    title: str = ""
    problem: str = ""  # why the newest attempt to draw it failed
    moment: float = 0.0  # by the monotonic clock


class Drawer:
    """Draws when asked, something is new and the last time is long enough ago; never two at once."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._body = Body()
        self._drawn: object = None  # what the records were at the last drawing
        self._due = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._is_drawing = self._is_closing = False
        self.cpu_seconds = 0.0  # spent on drawing so far

    def latest(self, records: object, is_last: bool = False) -> Body:
        """The newest drawing, and a new one begun if it is time. `records`: anything that changes when they do.

        `is_last`: the run has ended, and its last state is drawn without waiting.
        """
        with self._lock:
            is_due = time.monotonic() >= self._due or (is_last and self._drawn != (records, True))
            if (records, is_last) != self._drawn and is_due and not (self._is_drawing or self._is_closing):
                self._is_drawing = True
                threading.Thread(target=self._draw, args=((records, is_last),), name="drawer", daemon=True).start()
            return self._body

    @property
    def body(self) -> Body:
        return self._body

    def close(self) -> None:
        with self._lock:
            self._is_closing = True
            process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _draw(self, drawn: object) -> None:
        start = time.monotonic()
        html, title, cost, problem = "", "", None, ""
        try:
            answer = json.loads(self._run_drawing())
            html, title, cost = str(answer["html"]), str(answer["title"]), float(answer["cpu_seconds"])
            problem = str(answer["problem"])
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
            problem = "The report could not be drawn; the numbers above go on."
        cost = time.monotonic() - start if cost is None else cost
        with self._lock:
            if html:
                self._body = Body(self._body.number + 1, html, title, moment=time.monotonic())
            else:
                self._body = replace(self._body, problem=problem)
            self._drawn, self._is_drawing, self._process = drawn, False, None
            self._due = time.monotonic() + max(LEAST_SECONDS, REST * cost)
            self.cpu_seconds += cost

    def _run_drawing(self) -> bytes:
        with self._lock:
            if self._is_closing:
                return b""
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dragoman.web.watch.draw", str(self._run)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is for the server, which ends this
            )
        try:
            return self._process.communicate(timeout=MOST_SECONDS)[0]
        finally:
            self._process.kill()
            self._process.wait()
