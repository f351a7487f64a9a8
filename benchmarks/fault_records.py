"""A run's own records while it is being broken: its steps and events, read as they grow, on whichever host is first."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from dragoman.run.folder import RunFolder

# A record is on the disk a second after its step. What seems older or newer was stamped by a clock that jumped.
HONEST_SECONDS = 5.0
STARTS = ("started", "resumed")


@dataclass(frozen=True)
class Entry:
    """A line of a file; an attempt is known by the host whose folder it is in, and its number there."""

    attempt: tuple[str, int]
    time: float  # unix seconds, by the machine's clock
    step: int
    fields: dict[str, Any]


@dataclass
class Records:
    """All steps and events so far, in the order in which they were written."""

    steps: list[Entry] = field(default_factory=list[Entry])
    events: list[Entry] = field(default_factory=list[Entry])
    _offsets: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def read(self, host: str, folder: RunFolder) -> None:
        self.steps += self._news(host, folder.steps_path)
        self.events += self._news(host, folder.events_path)

    def _news(self, host: str, path: Path) -> list[Entry]:
        offset = self._offsets.get((host, path.name), 0)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read()
        except OSError:
            return []
        data = data[: data.rfind(b"\n") + 1]
        self._offsets[host, path.name] = offset + len(data)
        seen = time.time()
        return [entry for line in data.splitlines() if (entry := _entry(host, line, seen)) is not None]

    @property
    def newest_step(self) -> int:
        """Of the attempt that wrote last; 0 where nothing was written yet."""
        return self.steps[-1].step if self.steps else 0

    def starts_since(self, moment: float) -> list[Entry]:
        """Attempts that began after that moment."""
        return [event for event in self.events if event.fields["kind"] in STARTS and event.time > moment]

    def steps_since(self, moment: float) -> list[Entry]:
        return [step for step in self.steps if step.time > moment]

    def steps_from(self, start: Entry) -> list[Entry]:
        """What the attempt that began there has done so far."""
        return [step for step in self.steps if step.attempt == start.attempt and step.time >= start.time]

    def warnings_since(self, moment: float) -> list[str]:
        warnings = (event for event in self.events if event.fields["kind"] == "warning" and event.time > moment)
        return [str(event.fields["detail"].get("text", "")) for event in warnings]

    def step_at(self, moment: float) -> int:
        """The step that had finished last."""
        return next((step.step for step in reversed(self.steps) if step.time <= moment), 0)


def _entry(host: str, line: bytes, seen: float) -> Entry | None:
    """None where a kill tore the line."""
    try:
        fields = json.loads(line)
        stamp, attempt, step = float(fields["time"]), int(fields["attempt"]), int(fields["step"])
    except (ValueError, KeyError, TypeError):
        return None
    return Entry((host, attempt), stamp if abs(seen - stamp) < HONEST_SECONDS else seen, step, fields)


def longest_pause(steps: Sequence[Entry]) -> tuple[float, float]:
    """(seconds, when it ended) of the longest pause between neighbours. Where records are missing between two steps,
    as after a full disk, the steps were done nonetheless."""
    pauses = [
        ((after.time - before.time) / (1 + num_missing(before, after)), after.time) for before, after in pairwise(steps)
    ]
    return max(pauses, default=(0.0, 0.0))


def num_missing(before: Entry, after: Entry) -> int:
    """Records between two neighbours of one attempt."""
    return max(0, after.step - before.step - 1) if before.attempt == after.attempt else 0
