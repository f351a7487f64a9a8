"""Where the time of a step goes: named phases on the host's clock. Knows names and seconds only."""

import time
from collections.abc import Generator
from contextlib import contextmanager

PHASES = ("data", "forward", "backward", "exchange", "optimizer", "validation", "checkpoint")


class Meter:
    """Adds up phases until `take`, which gives the parts of the wall time since the last one."""

    def __init__(self) -> None:
        self._parts: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self._since = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._parts[name] += time.perf_counter() - start

    def take(self) -> dict[str, float]:
        """Seconds by phase, with `other` (what no phase claims) and `wall` (all of it); starts anew."""
        now = time.perf_counter()
        wall = now - self._since
        parts = {**self._parts, "other": wall - sum(self._parts.values()), "wall": wall}
        self._parts = dict.fromkeys(PHASES, 0.0)
        self._since = now
        return parts
