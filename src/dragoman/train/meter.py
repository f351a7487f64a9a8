"""Where the time of a step goes: named phases between marks on a clock, read late and never waited for.

A GPU is told what to do long before it does it, so that a step's times are known only some steps later.
"""

import time
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from dragoman.train.clocks import Clock

PHASES = ("data", "forward", "backward", "exchange", "optimizer", "validation", "checkpoint")
OTHER = "other"


@dataclass(frozen=True)
class StepTimes:
    """One step: seconds by phase, with `other` (what no phase claims) and `wall` (all of it)."""

    seconds: dict[str, float]
    end: float  # unix seconds
    exchange_start: float | None  # unix seconds of the first wait for the exchange

    @property
    def step_seconds(self) -> float:
        """Without validation and checkpoint."""
        return self.seconds["wall"] - self.seconds["validation"] - self.seconds["checkpoint"]


@dataclass
class _Step:
    marks: list[tuple[str, object]]  # each begins a phase, and ends the one before
    end: object = None
    end_time: float | None = None  # unix seconds, where they were read


class Meter:
    """Marks where phases begin; `end_step` closes a step, `take` gives the steps whose last mark has been reached."""

    def __init__(self, clock: Clock[object]) -> None:
        self._clock = clock
        start = clock.mark()
        self._step = _Step([(OTHER, start)])
        self._ended: deque[_Step] = deque()
        clock.await_mark(start)
        self._time = time.time()  # unix seconds at the start of the oldest step that was not taken
        # For whoever looks from another thread; by the host's clock, which does not jump.
        self.place = (OTHER, time.monotonic())  # the phase that the host is in, and since when
        self.longest_seconds = 0.0  # of a step, without the first, which prepares
        self._began: float = time.monotonic()
        self._num_ended = 0

    def begin(self, phase: str) -> None:
        """What follows belongs to this phase, until the next one begins."""
        self._step.marks.append((phase, self._clock.mark()))
        self.place = (phase, time.monotonic())

    def end_step(self, set_time: bool = False) -> None:
        """The step ends here, and the next one begins. `set_time` waits for the mark and reads the host's clock: a
        GPU's clock drifts from it, and both may be corrected."""
        end = self._clock.mark()
        self._step.end = end
        if set_time:
            self._clock.await_mark(end)
            self._step.end_time = time.time()
        self._ended.append(self._step)
        self._step = _Step([(OTHER, end)])
        self.place = (OTHER, time.monotonic())
        if self._num_ended:
            self.longest_seconds = max(self.longest_seconds, self.step_age())
        self._num_ended += 1
        self._began = self.place[1]

    def step_age(self) -> float:
        """Seconds since the host began with this step."""
        return time.monotonic() - self._began

    def take(self, wait: bool = False) -> list[StepTimes]:
        """The steps that have ended, oldest first, each once; with `wait` all of them."""
        taken: list[StepTimes] = []
        while self._ended and (wait or self._clock.is_reached(self._ended[0].end)):
            step = self._ended.popleft()
            self._clock.await_mark(step.end)
            taken.append(self._times(step))
            self._time = taken[-1].end
            self._clock.give_back([mark for _, mark in step.marks])  # the end is the next step's start
        return taken

    def _times(self, step: _Step) -> StepTimes:
        seconds: dict[str, float] = dict.fromkeys((*PHASES, OTHER), 0.0)
        begun: float | None = None
        passed = 0.0
        for (phase, start), (_, end) in pairwise([*step.marks, ("", step.end)]):
            if phase == "exchange" and begun is None:
                begun = self._time + passed
            part = self._clock.seconds(start, end)
            seconds[phase] += part
            passed += part
        return StepTimes({**seconds, "wall": passed}, step.end_time or self._time + passed, begun)
