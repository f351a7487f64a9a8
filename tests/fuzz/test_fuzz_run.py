"""Run folders: whatever a disk, a network or a stranger made of them, they are read or refused, and never changed."""

import json

import pytest
from fuzz_samples import make_run

from dragoman.errors import DragomanError
from dragoman.run.completeness import find_gaps
from dragoman.run.consent import open_question
from dragoman.run.control import control_path, read_control
from dragoman.run.folder import RunFolder
from dragoman.run.reader import list_checkpoints, read_run


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path / "run")
    return RunFolder(tmp_path / "run")


def test_damaged_runs_are_one_line_or_a_record(tried):
    tried("run", 200)


def test_a_report_of_a_damaged_run_is_one_line_or_a_report(tried):
    tried("report", 120)


def test_the_charts_of_a_damaged_run_are_drawn(tried):
    tried("charts", 12)


def test_lines_that_are_none_are_skipped_and_counted(run):
    num_steps = len(read_run(run.path).steps)
    with run.steps_path.open("ab") as file:
        file.write(b"\xff\n" + b"[" * 100_000 + b"\n" + b'{"step": ' + b"7" * 5_000 + b"}\n")
    record = read_run(run.path)
    assert len(record.steps) == num_steps
    assert record.num_bad_lines == {"steps.jsonl": 3}


@pytest.mark.parametrize("world_size", [10**12, "many"])
def test_a_manifest_of_more_ranks_than_there_are_computers_is_refused(run, world_size):
    values = json.loads(run.manifest_path.read_text())
    run.manifest_path.write_text(json.dumps({**values, "world_size": world_size}))
    with pytest.raises(DragomanError, match="world_size"):
        read_run(run.path)


def test_a_manifest_nested_without_end_is_refused(run):
    run.manifest_path.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(DragomanError, match="cannot read"):
        read_run(run.path)


@pytest.mark.parametrize(
    "change",
    [
        {"pid": 2**70},
        {"pid": -1},
        {"pid_started": None},
        {"members": [3]},
        {"members": [{}]},
        {"state": 1},
    ],
)
def test_a_controllers_word_of_another_kind_is_none(run, change):
    path = control_path(run)
    assert read_control(run) is not None
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert read_control(run) is None


def test_a_question_that_is_no_text_is_none(run):
    (run.path / ".question").write_bytes(b"\xff")
    assert open_question(run) is None


def test_a_pointer_out_of_the_run_leads_to_no_checkpoint(run, tmp_path):
    elsewhere = tmp_path / "step-00000005"
    run.step_checkpoint(5).rename(elsewhere)
    (run.checkpoints_path / "last").unlink()
    (run.checkpoints_path / "last").symlink_to(elsewhere)
    assert run.pointed_step("last") is None
    assert not any(checkpoint.pointers for checkpoint in list_checkpoints(run))
    assert any("checkpoints/last leads to" in gap for gap in find_gaps(run.path))
