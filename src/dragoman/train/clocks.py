"""Marks in time, on the clock of whatever does the work: the host, or a GPU that is told things ahead of doing them."""

import time
from typing import Generic, Protocol, TypeVar

import torch

M = TypeVar("M")


class Clock(Protocol, Generic[M]):
    """`mark` never waits; what lies between two marks may only be asked once the later one is reached."""

    def mark(self) -> M: ...

    def is_reached(self, mark: M) -> bool: ...

    def await_mark(self, mark: M) -> None: ...

    def seconds(self, start: M, end: M) -> float: ...

    def give_back(self, marks: list[M]) -> None: ...


class HostClock:
    """A mark is a moment of this process."""

    def mark(self) -> float:
        return time.perf_counter()

    def is_reached(self, mark: float) -> bool:
        return True

    def await_mark(self, mark: float) -> None:
        pass

    def seconds(self, start: float, end: float) -> float:
        return end - start

    def give_back(self, marks: list[float]) -> None:
        pass


class GpuClock:
    """A mark is an event in the GPU's queue, reached when all that was queued before it is done. Events are used again:
    making one takes longer than recording it."""

    def __init__(self) -> None:
        self._free: list[torch.cuda.Event] = []

    def mark(self) -> torch.cuda.Event:
        event = self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def is_reached(self, mark: torch.cuda.Event) -> bool:
        return mark.query()

    def await_mark(self, mark: torch.cuda.Event) -> None:
        mark.synchronize()

    def seconds(self, start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        return start.elapsed_time(end) / 1000

    def give_back(self, marks: list[torch.cuda.Event]) -> None:
        self._free += marks


def clock_of(device: torch.device) -> "Clock[object]":
    return GpuClock() if device.type == "cuda" else HostClock()  # type: ignore[return-value]
