"""Gives a hang a name: where no step ends for too long, which rank is in which phase since when, with its stack.

Each rank speaks for itself. Those that wait for another say `exchange`; the one they wait for says where it is, or says
nothing at all, because it is frozen or its machine is gone.
"""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from dragoman.run.control import HUNG
from dragoman.train.meter import Meter
from dragoman.units import format_seconds

SLOW_STEPS = 10  # a step may take so many times the longest one so far
LONG_PHASES = ("validation", "checkpoint")
LONG_FACTOR = 6  # and so much longer in these, or before the first step has ended
PAUSE_SECONDS = 5.0  # a look that comes so late: this process itself stood still, by Ctrl-Z or a debugger
ECHO_SECONDS = 3.0  # others notice within a second of each other: nobody leaves before all have spoken


class Watchdog:
    """Looks at the meter from a thread of its own, and ends the process by `leave`. A limit of 0 never does."""

    def __init__(
        self,
        meter: Meter,
        who: str,
        stack_path: Path,
        limit_seconds: float,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self._meter = meter
        self._who = who
        self._stack_path = stack_path
        self._limit_seconds = limit_seconds
        self._leave = leave
        self._closed = threading.Event()
        if limit_seconds:
            threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def close(self) -> None:
        """Steps are over."""
        self._closed.set()

    def _watch(self) -> None:
        interval = min(1.0, self._limit_seconds / 10)
        looked = awake_since = time.monotonic()
        while not self._closed.wait(interval):
            now = time.monotonic()
            awake_since = now if now - looked > interval + PAUSE_SECONDS else awake_since
            looked = now
            if min(self._meter.step_age(), now - awake_since) > self._allowed_seconds():
                self._speak()
                if not self._closed.wait(ECHO_SECONDS):
                    self._leave(HUNG)
                return

    def _allowed_seconds(self) -> float:
        longest = self._meter.longest_seconds
        allowed = max(self._limit_seconds, SLOW_STEPS * longest)
        return allowed * (LONG_FACTOR if not longest or self._meter.place[0] in LONG_PHASES else 1)

    def _speak(self) -> None:
        phase, since = self._meter.place
        age, in_phase = format_seconds(self._meter.step_age()), format_seconds(time.monotonic() - since)
        stack = ""
        try:
            with self._stack_path.open("a", encoding="utf-8") as file:
                file.write(f"{self._who}, {time.strftime('%Y-%m-%d %H:%M:%S')}, in {phase} for {in_phase}\n")
                file.flush()
                faulthandler.dump_traceback(file, all_threads=True)
            stack = f"; its stack is in {self._stack_path}"
        except OSError:
            pass  # a full disk may be the very reason
        sys.stderr.write(f"{self._who}: no step has ended for {age}; it is in {phase} for {in_phase}{stack}\n")
        sys.stderr.flush()
