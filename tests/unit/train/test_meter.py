import math
from dataclasses import dataclass, field

import pytest

from dragoman.train import meter
from dragoman.train.clocks import HostClock
from dragoman.train.meter import PHASES, Meter


@dataclass
class Queue:
    """A clock like a GPU's: marks are numbered, and reached only up to the one it has come to."""

    times: list[float]
    done: int = math.inf
    next: int = 0
    given: list[int] = field(default_factory=list)

    def mark(self) -> int:
        self.next += 1
        return self.next - 1

    def is_reached(self, mark: int) -> bool:
        return mark <= self.done

    def await_mark(self, mark: int) -> None:
        self.done = max(self.done, mark)

    def give_back(self, marks: list[int]) -> None:
        self.given += marks

    def seconds(self, start: int, end: int) -> float:
        assert end <= self.done, "asked before it was reached"
        return self.times[end] - self.times[start]


@pytest.fixture(autouse=True)
def host_time(monkeypatch):
    monkeypatch.setattr(meter.time, "time", lambda: 1_000.0)


def test_phases_other_and_wall_add_up():
    watch = Meter(Queue([100, 101, 103, 104, 105.5, 110]))
    for name in ("forward", "backward", "forward", "other"):
        watch.begin(name)
    watch.end_step()
    parts = watch.take()[0].seconds
    assert (parts["forward"], parts["backward"], parts["data"]) == (3.5, 1, 0)
    assert (parts["other"], parts["wall"]) == (5.5, 10)
    assert sum(parts[name] for name in (*PHASES, "other")) == parts["wall"]


def test_the_next_step_begins_where_the_last_one_ended():
    watch = Meter(Queue([0, 1, 4, 5]))
    watch.begin("data")
    watch.end_step()
    watch.end_step()
    first, second = watch.take()
    assert (first.seconds["data"], first.seconds["other"], first.seconds["wall"]) == (3, 1, 4)
    assert (second.seconds["data"], second.seconds["wall"]) == (0, 1)
    assert watch.take() == []


def test_steps_that_a_device_has_not_reached_are_not_waited_for():
    queue = Queue([0, 1, 2, 3], done=0)
    watch = Meter(queue)
    watch.end_step()
    watch.end_step()
    assert watch.take() == []
    queue.done = 1
    assert len(watch.take()) == 1
    assert [times.seconds["wall"] for times in watch.take(wait=True)] == [1]
    assert queue.given == [0, 1]  # the last one is the start of the step that goes on


def test_moments_are_the_hosts_however_late_they_are_read():
    """The exchange of the second step begins 7 s after the meter was made."""
    watch = Meter(Queue([0, 5, 7, 8, 8.5, 9]))
    watch.end_step()
    watch.begin("exchange")
    watch.begin("optimizer")
    watch.begin("exchange")
    watch.end_step()
    first, second = watch.take()
    assert (first.end, first.exchange_start) == (1_005, None)
    assert (second.end, second.exchange_start) == (1_009, 1_007)


def test_a_clock_that_was_corrected_is_read_again(monkeypatch):
    watch = Meter(Queue([0, 5, 7]))
    monkeypatch.setattr(meter.time, "time", lambda: 2_000.0)
    watch.end_step(set_time=True)
    watch.end_step()
    first, second = watch.take()
    assert (first.end, second.end) == (2_000, 2_002)


def test_the_hosts_clock_has_always_reached_its_marks():
    clock = HostClock()
    start, end = clock.mark(), clock.mark()
    assert clock.is_reached(end)
    assert clock.seconds(start, end) >= 0
