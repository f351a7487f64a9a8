"""How a run stands, from its records and from what its machine says."""

import dataclasses

import pytest

from dragoman.run.control import Control, write_control
from dragoman.run.folder import RunFolder, lock_run
from dragoman.web.watch.live import LiveRun
from dragoman.web.watch.state import state_of
from dragoman.web.watch.vitals import Vitals, read_vitals
from growing_run import GrowingRun


@pytest.fixture
def run(tmp_path):
    grown = GrowingRun(tmp_path / "run", start=1000.0)
    grown.steps(10)
    return grown


def state(run, **vitals):
    live = LiveRun(run.folder)
    live.refresh()
    given = {"is_there": True, "now": run.now, **vitals}
    return state_of(live, Vitals(**given))


def test_a_folder_that_is_not_there_yet(tmp_path):
    live = LiveRun(RunFolder(tmp_path / "none"))
    live.refresh()
    assert state_of(live, read_vitals(live.folder)).kind == "waiting"


def test_a_folder_without_a_manifest_is_starting(tmp_path):
    folder = RunFolder(tmp_path)
    folder.log_path.write_text("measuring the link\n")
    live = LiveRun(folder)
    live.refresh()
    found = state_of(live, read_vitals(folder))
    assert (found.kind, found.sentence) == ("starting", "measuring the link")
    question = dataclasses.replace(read_vitals(folder), question="31 s a step. Continue?")
    assert "31 s a step" in state_of(live, question).sentence


def test_a_run_that_vanished(run):
    live = LiveRun(run.folder)
    live.refresh()
    assert state_of(live, Vitals(False, run.now)).kind == "gone"


def test_fresh_records_are_a_running_run_whatever_the_locks_say(run):
    assert state(run, is_held=True).kind == "running"
    assert state(run, is_held=False, now=run.now + 5).kind == "running"
    assert state(run, is_held=None).kind == "running"


def test_between_steps_the_samples_show_that_it_lives(run):
    run.samples(60)
    found = state(run, is_held=True)
    assert found.kind == "running" and "No step for 1 min 00 s" in found.sentence


def test_silence(run):
    held = state(run, is_held=True, now=run.now + 90)
    assert held.kind == "silent" and "1 min 30 s" in held.sentence
    unknown = state(run, is_held=None, now=run.now + 90)
    assert unknown.kind == "silent" and "cannot be seen" in unknown.sentence
    run.steps(5, step_seconds=60.0)
    assert state(run, is_held=True, now=run.now + 90).kind == "silent"
    run.steps(10, step_seconds=60.0)
    assert state(run, is_held=True, now=run.now + 90).kind == "running", "its steps take a minute each"


def test_a_run_that_nobody_holds_has_crashed(run):
    found = state(run, is_held=False, now=run.now + 90)
    assert found.kind == "crashed" and "goes on from the last checkpoint" in found.sentence


def test_the_controller_knows_why(run):
    ended = {"is_controlled": False, "control_state": "ended", "now": run.now + 90}
    found = state(run, **ended, exit_code=1, reason="host b is gone")
    assert (found.kind, found.sentence) == ("crashed", "Host b is gone.")
    assert state(run, **ended, exit_code=130, reason="stopped").kind == "stopped"


@pytest.mark.parametrize(("kind", "reason"), [("finished", "max_steps"), ("stopped", "interrupted")])
def test_an_end_is_an_end(run, kind, reason):
    run.event(kind, reason=reason)
    found = state(run, is_held=False, now=run.now + 1e6)
    assert found.kind == kind and found.sentence


def test_an_end_of_an_earlier_attempt_is_none(run):
    run.event("stopped", reason="interrupted")
    run.resume(10)
    assert state(run, is_held=True).kind == "starting"
    run.steps(1)
    assert state(run, is_held=True).kind == "running"


def test_started_again_and_nothing_written_yet(run):
    run.event("stopped", reason="interrupted")
    again = {"is_controlled": True, "control_state": "starting", "control_attempt": 2}
    assert state(run, **again, now=run.now + 500).kind == "starting"


def test_a_host_that_does_not_answer(run):
    found = state(run, is_there=False, problem="b: no route")
    assert (found.kind, found.sentence) == ("unreachable", "b: no route")


def test_vitals_are_read_from_the_folder(run):
    folder = run.folder
    assert read_vitals(folder).is_held is None, "no worker ever held it"
    with lock_run(folder):
        assert read_vitals(folder).is_held is True
    assert read_vitals(folder).is_held is False
    write_control(folder, Control("ended", 3, 999_999_999, 0.0, "a", "10.0.0.1", 1, exit_code=1, reason="gone"))
    found = read_vitals(folder)
    assert (found.is_controlled, found.control_state, found.control_attempt, found.reason) == (
        False,
        "ended",
        3,
        "gone",
    )
