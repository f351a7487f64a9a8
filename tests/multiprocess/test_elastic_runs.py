"""Who takes part in a run while hosts come and go, with workers of a few lines: the controller alone decides it."""

import os
import signal

import pytest

from dragoman.run.control import DIVERGED

ATTEMPT = "attempt = int(sys.argv[1])\nprint('attempt', attempt, 'of', os.environ['WORLD_SIZE'], flush=True)\n"
LEAVES = "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(143)))\n"
TRAINS = ATTEMPT + LEAVES + "time.sleep(120)"


@pytest.mark.parametrize(
    ("failure", "word"),
    [("os.kill(os.getpid(), 9)", "was killed by SIGKILL"), ("sys.exit(70)", "hung"), ("sys.exit(75)", "lost its")],
)
def test_a_rank_that_dies_is_followed_by_another_attempt(make_run, failure, word):
    run = make_run(f"{ATTEMPT}if attempt == 1 and rank == 1: {failure}", max_restarts=3).start_agents()
    control = run.ended()
    assert (control.exit_code, control.attempt) == (0, 2)
    assert f"[controller] rank 1 on host b {word}" in run.log()
    assert "attempt 2 follows" in run.log()


@pytest.mark.parametrize("code", [1, 2, DIVERGED])
def test_what_fails_before_it_ever_trained_fails_once(make_run, code):
    run = make_run(f"{ATTEMPT}sys.exit({code} if rank == 1 else 75)", max_restarts=3).start_agents()
    assert (run.ended().exit_code, run.now.attempt) == (code, 1)


def test_attempts_in_vain_come_to_an_end(make_run):
    run = make_run(f"{ATTEMPT}os.kill(os.getpid(), 9)", max_restarts=2).start_agents()
    control = run.ended()
    assert (control.exit_code, control.attempt) == (1, 3)


def test_a_host_that_fails_again_and_again_is_left_out(make_run):
    fails = "os.kill(os.getpid(), 9) if os.environ['DRAGOMAN_HOST'] == 'b' else "
    program = f"{ATTEMPT}{fails}time.sleep(0 if attempt == 4 else 60)"
    run = make_run(program, (1, 1, 1), min_hosts=2, max_restarts=2).start_agents()
    control = run.ended()
    assert (control.exit_code, control.attempt) == (0, 4)
    assert "only ranks of host b failed, again and again: the run goes on without it" in run.log()
    assert [member["name"] for member in control.members] == ["a", "c"]


NEW_CHECKPOINT = """
from pathlib import Path
checkpoints = Path(os.environ["RUN"]) / "checkpoints"
if rank == 0:
    (checkpoints / f"step-0000000{attempt}").mkdir()
    (checkpoints / "last").unlink(missing_ok=True)
    (checkpoints / "last").symlink_to(f"step-0000000{attempt}")
if attempt < 6: os.kill(os.getpid(), 9)
"""


def test_attempts_that_get_somewhere_are_not_counted(make_run):
    run = make_run(ATTEMPT + NEW_CHECKPOINT, (1,), max_restarts=1).start_agents()
    assert (run.ended().exit_code, run.now.attempt) == (0, 6)


def test_a_lost_host_is_left_out_and_admitted_when_it_is_back(make_run):
    run = make_run(TRAINS, (1, 1, 1), min_hosts=1, max_restarts=3).start_agents()
    run.wait_for_line("[c:2] attempt 1 of 3")
    run.kill_host("b")
    run.wait_for_line("[c:1] attempt 2 of 2", 20)
    assert [member["name"] for member in run.now.members] == ["a", "c"]
    run.start_agents("b")
    run.wait_for_line("[c:2] attempt 3 of 3", 30)
    assert "host b is there" in run.log()
    assert run.log().count("saved") == 2, "those that trained on were let save"
    assert [member["name"] for member in run.now.members] == ["a", "b", "c"]
    os.kill(run.now.pid, signal.SIGINT)
    assert run.ended(20).exit_code == 130


def test_a_host_whose_connection_breaks_comes_back_by_itself(make_run):
    run = make_run(TRAINS, max_restarts=3).start_agents()
    run.wait_for_line("[b:1] attempt 1 of 2")
    run.agents["b"].send_signal(signal.SIGSTOP)
    run.wait_for_line("too few hosts are left: waiting for them", 20)
    run.agents["b"].send_signal(signal.SIGCONT)
    run.wait_for_line("[b:1] attempt 2 of 2", 30)
    os.kill(run.now.pid, signal.SIGINT)
    assert run.ended(20).exit_code == 130


def test_a_stop_ends_the_wait_for_hosts(make_run):
    run = make_run(TRAINS, max_restarts=3).start_agents()
    run.wait_for_line("[b:1] attempt 1 of 2")
    run.kill_host("b")
    run.wait_for_line("too few hosts are left: waiting for them", 20)
    os.kill(run.now.pid, signal.SIGTERM)
    control = run.ended(10)
    assert (control.exit_code, control.reason) == (143, "stopped while hosts were missing")


def test_with_enough_hosts_a_run_begins_without_the_rest(make_run):
    run = make_run(ATTEMPT, join_seconds=2.0, min_hosts=1).start_agents("a")
    assert run.ended().exit_code == 0
    assert "[a:0] attempt 1 of 1" in run.log()
