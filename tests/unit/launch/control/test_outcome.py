"""Whose doing an end was, from what the hosts report."""

import pytest

from dragoman.launch.control.attempt import Attempt, _conclude, _take
from dragoman.launch.control.links import Event
from dragoman.launch.control.outcome import Exit, describe_code, find_cause, judge

LOST_PEER, INTERRUPTED, PREEMPTED, DIVERGED = 75, 130, 143, 71


def exits(*codes: int, is_after_stop: bool = False) -> list[Exit]:
    return [Exit("ab"[rank % 2], rank, code, is_after_stop) for rank, code in enumerate(codes)]


@pytest.mark.parametrize(
    ("codes", "rank"),
    [
        ((LOST_PEER, 1), 1),
        ((LOST_PEER, -9, LOST_PEER), 1),
        ((1, -11), 1),
        ((LOST_PEER, LOST_PEER, 2), 2),
        ((1, 2), 1),
        ((1, 3), 0),
        ((-15, INTERRUPTED, 1), 2),
        ((LOST_PEER, LOST_PEER), 0),
    ],
)
def test_the_cause_is_not_its_echo(codes, rank):
    cause = find_cause(exits(*codes))
    assert cause is not None
    assert cause.rank == rank


@pytest.mark.parametrize("codes", [(), (INTERRUPTED, INTERRUPTED), (-15, INTERRUPTED, 143)])
def test_who_leaves_when_told_is_no_cause(codes):
    assert find_cause(exits(*codes)) is None


def test_a_kill_after_the_stop_is_ours():
    told = exits(-9, LOST_PEER, is_after_stop=True)
    assert find_cause(told) is None
    assert judge(told, is_stopped=True).exit_code == INTERRUPTED


@pytest.mark.parametrize(
    ("codes", "is_stopped", "code", "words"),
    [
        ((), False, 0, "finished"),
        ((), True, INTERRUPTED, "stopped"),
        ((INTERRUPTED, INTERRUPTED), True, INTERRUPTED, "stopped"),
        ((INTERRUPTED,), False, INTERRUPTED, "interrupted"),
        ((LOST_PEER, INTERRUPTED), True, INTERRUPTED, "stopped"),
        ((PREEMPTED, INTERRUPTED), False, PREEMPTED, "told by a signal to leave"),
        ((-10, -15), False, PREEMPTED, "told by a signal to leave"),
        # Who is left over when one rank has gone is ended with SIGTERM: no warning of a machine.
        ((INTERRUPTED, -15), False, INTERRUPTED, "interrupted"),
        ((PREEMPTED, PREEMPTED), True, INTERRUPTED, "stopped"),
        ((2, 2), True, 2, "rank 0 on host a failed with exit code 2"),
        ((LOST_PEER, -9), False, 1, "rank 1 on host b was killed by SIGKILL"),
        ((1,), False, 1, "rank 0 on host a failed with exit code 1"),
        ((DIVERGED, -15), False, DIVERGED, "rank 0 on host a ended because training diverged"),
    ],
)
def test_the_outcome_in_a_code_and_a_sentence(codes, is_stopped, code, words):
    outcome = judge(exits(*codes), is_stopped)
    assert outcome.exit_code == code
    assert words in outcome.reason


@pytest.mark.parametrize(
    ("codes", "order", "lost", "reason"),
    [
        ((0, -9), None, [], "rank 1 on host b was killed by SIGKILL (out of memory? the kernel's log says so); "),
        ((), "stop", [], "host a stopped answering"),
        ((0, -9), None, ["b"], "host b, host a stopped answering"),
    ],
)
def test_a_host_that_is_late_hides_no_cause(codes, order, lost, reason):
    found = [entry for entry in exits(*codes) if entry.code]
    attempt = Attempt(1, [], None, None, None, lambda: None, exits=found, lost=lost, late=["a"], order=order)
    outcome = _conclude(attempt)
    assert outcome.exit_code == 1
    assert outcome.reason == reason + ("host a did not report" if outcome.cause else "")


def test_a_stop_while_a_host_is_let_in_is_a_stop():
    class Nobody:
        def send(self, host, message): ...

    attempt = Attempt(1, [], Nobody(), None, None, lambda: None, order="admit")
    assert _conclude(attempt).is_admission
    _take(attempt, Event("stop"))
    _take(attempt, Event("kill"))
    outcome = _conclude(attempt)
    assert (outcome.is_asked, outcome.is_admission, outcome.exit_code) == (True, False, 130)


def test_codes_in_words():
    assert describe_code(3) == "failed with exit code 3"
    assert describe_code(-11) == "was killed by SIGSEGV"
    assert "out of memory?" in describe_code(-9)
    assert describe_code(-99) == "was killed by signal 99"
    assert "another rank" in describe_code(LOST_PEER)
    assert "training diverged" in describe_code(DIVERGED)
