"""A hang gets a name: the phase, since when, and the stack."""

import threading
import time

import pytest
import torch

from dragoman.run.control import HUNG
from dragoman.train import watchdog
from dragoman.train.clocks import clock_of
from dragoman.train.meter import Meter
from dragoman.train.watchdog import LONG_FACTOR, Watchdog

LIMIT = 0.3


class Watched:
    """A meter with some steps behind it, and who looks at it."""

    def __init__(self, path, limit: float = LIMIT) -> None:
        self.meter = Meter(clock_of(torch.device("cpu")))
        for _ in range(3):
            self.meter.end_step()
        self.left = threading.Event()
        self.codes: list[int] = []
        self.path = path / "hang.txt"
        self.dog = Watchdog(self.meter, "rank 1 on b", self.path, limit, self._leave)

    def _leave(self, code: int) -> None:
        self.codes.append(code)
        self.left.set()


@pytest.fixture
def watched(tmp_path, monkeypatch):
    monkeypatch.setattr(watchdog, "ECHO_SECONDS", 0.0)
    found = Watched(tmp_path)
    yield found
    found.dog.close()


def test_a_hang_says_which_rank_is_where_since_when_and_ends_it(watched, capfd):
    watched.meter.begin("exchange")
    assert watched.left.wait(10)
    assert watched.codes == [HUNG]
    said = capfd.readouterr().err
    assert said.startswith("rank 1 on b: no step has ended for 0.")
    assert "; it is in exchange for 0." in said and str(watched.path) in said
    assert "test_a_hang_says_which_rank" in watched.path.read_text()


def test_steps_that_end_are_no_hang(watched):
    for _ in range(20):
        time.sleep(LIMIT / 10)
        watched.meter.end_step()
    assert watched.meter.step_age() < LIMIT
    assert not watched.left.is_set()


def test_an_evaluation_may_take_longer(watched):
    watched.meter.begin("validation")
    assert not watched.left.wait(3 * LIMIT)
    assert watched.left.wait(2 * LONG_FACTOR * LIMIT + 5)


def test_so_may_steps_that_take_long_anyway(watched):
    watched.meter.longest_seconds = LIMIT
    assert not watched.left.wait(3 * LIMIT)


def test_a_process_that_stood_still_itself_has_time_again(tmp_path, monkeypatch):
    monkeypatch.setattr(watchdog, "PAUSE_SECONDS", -1.0)  # every look comes late
    paused = Watched(tmp_path)
    assert not paused.left.wait(4 * LIMIT)
    paused.dog.close()


def test_a_disk_that_takes_no_stack_does_not_silence_it(watched, capfd):
    watched.path.mkdir()
    assert watched.left.wait(10)
    assert "no step has ended" in capfd.readouterr().err


def test_nobody_looks_once_steps_are_over_or_without_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(watchdog, "ECHO_SECONDS", 0.0)
    closed, endless = Watched(tmp_path), Watched(tmp_path, limit=0.0)
    closed.dog.close()
    assert not closed.left.wait(3 * LIMIT)
    assert not endless.left.is_set()
