"""When a run ends: what one rank votes, and what all conclude."""

import os
import signal

import pytest

from dragoman.config import TrainConfig
from dragoman.train import stop
from dragoman.train.checkpoint import Progress
from dragoman.train.stop import Stopper
from small_runs import kept_signals


@pytest.fixture(autouse=True)
def _signals():
    with kept_signals():
        yield


def clock(monkeypatch, *times: float) -> None:
    ticks = iter(times)
    monkeypatch.setattr(stop.time, "monotonic", lambda: next(ticks))


def test_nothing_to_say_at_first():
    stopper = Stopper(TrainConfig(max_minutes=1), Progress())
    assert stopper.votes() == (0, 0)
    assert stopper.reason(*stopper.votes()) is None


@pytest.mark.parametrize(
    ("number", "reason"),
    [(signal.SIGTERM, "preempted"), (signal.SIGUSR1, "preempted"), (signal.SIGINT, "interrupted")],
)
def test_a_signal_is_a_vote_and_only_a_second_ctrl_c_is_not_caught(number, reason):
    stopper = Stopper(TrainConfig(), Progress())
    os.kill(os.getpid(), number)
    assert (signal.getsignal(number) == signal.SIG_DFL) == (number == signal.SIGINT)
    assert stopper.reason(*stopper.votes()) == reason


def test_the_first_signal_counts_and_one_warned_machine_decides_for_all():
    stopper = Stopper(TrainConfig(), Progress())
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    asked, _ = stopper.votes()
    assert stopper.reason(asked * 99) == "interrupted"
    os.kill(os.getpid(), signal.SIGUSR1)
    warned = Stopper(TrainConfig(), Progress())
    os.kill(os.getpid(), signal.SIGUSR1)
    assert stopper.reason(asked + warned.votes()[0]) == "preempted"


def test_what_may_be_left_out_is_left_out_but_not_at_the_end_of_a_run():
    stopper = Stopper(TrainConfig(max_steps=5), progress := Progress(step=4))
    assert stopper.reason() is None
    assert not stopper.is_leaving()
    os.kill(os.getpid(), signal.SIGTERM)
    assert stopper.is_leaving()
    progress.step = 5
    assert stopper.reason() == "max_steps"
    assert not stopper.is_leaving()


def test_the_clock_counts_over_all_attempts(monkeypatch):
    clock(monkeypatch, 1_000, 1_029, 1_030, 1_031)
    progress = Progress(trained_seconds=30)
    stopper = Stopper(TrainConfig(max_minutes=1), progress)
    assert stopper.votes() == (0, 0)
    assert stopper.votes() == (0, 1)
    stopper.tick()
    assert progress.trained_seconds == 61


def test_no_limit_is_never_late(monkeypatch):
    clock(monkeypatch, 0, 1e9)
    assert Stopper(TrainConfig(max_minutes=0), Progress()).votes() == (0, 0)


def test_one_vote_of_many_is_enough():
    stopper = Stopper(TrainConfig(), Progress())
    assert stopper.reason(interrupted=1.0) == "interrupted"
    assert stopper.reason(late=3.0) == "max_minutes"


def test_the_last_step_and_lost_patience_end_a_run():
    assert Stopper(TrainConfig(max_steps=5), Progress(step=5)).reason() == "max_steps"
    assert Stopper(TrainConfig(max_steps=5), Progress(step=4)).reason() is None
    assert Stopper(TrainConfig(patience=3), Progress(num_evals_without_gain=3)).reason() == "patience"
    assert Stopper(TrainConfig(patience=3), Progress(num_evals_without_gain=2)).reason() is None
    assert Stopper(TrainConfig(patience=0), Progress(num_evals_without_gain=99)).reason() is None
