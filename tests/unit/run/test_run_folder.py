import errno

import pytest

from dragoman.errors import DragomanError
from dragoman.run.folder import (
    RunFolder,
    create_run_folder,
    is_locked,
    lock_run,
    open_run_folder,
    parse_step,
    step_name,
)


def test_names(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.step_checkpoint(44000) == tmp_path / "checkpoints" / "step-00044000"
    assert folder.eval_path(7, "wmt14/full") == tmp_path / "evals" / "step-00000007" / "wmt14%2Ffull.jsonl"
    assert folder.timing_path(12).name == "timing.rank-012.jsonl"


@pytest.mark.parametrize("name", ["step-", "step-1a", "average", ".step-00000001.tmp", "best-loss"])
def test_only_whole_names_are_steps(name):
    assert parse_step(name) is None
    assert parse_step(step_name(123456789)) == 123456789


def test_a_pointer_moves_and_may_dangle(folder):
    assert folder.pointed_step("last") is None
    for step in (10, 20):
        folder.step_checkpoint(step).mkdir()
        folder.set_pointer("last", step)
    assert folder.pointed_step("last") == 20
    # Relative, because runs are moved between machines.
    assert (folder.checkpoints_path / "last").readlink().as_posix() == "step-00000020", "relative: runs are moved"
    assert folder.step_checkpoints() == [10, 20]
    folder.step_checkpoint(20).rmdir()
    assert folder.pointed_step("last") is None


def test_what_is_no_run_folder(tmp_path):
    with pytest.raises(DragomanError, match="there is no folder"):
        open_run_folder(tmp_path / "nothing")
    with pytest.raises(DragomanError, match=r"no manifest\.json"):
        open_run_folder(tmp_path)


def test_creating_refuses_what_belongs_to_somebody_else(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(DragomanError, match="holds other files"):
        create_run_folder(tmp_path)
    with pytest.raises(DragomanError, match="is a file"):
        create_run_folder(tmp_path / "thesis.tex")


def test_creating_again_is_fine(tmp_path):
    for _ in range(2):
        create_run_folder(tmp_path / "run")


@pytest.mark.parametrize("opening", [create_run_folder, open_run_folder])
def test_a_name_that_no_disk_takes_is_one_line(tmp_path, opening):
    with pytest.raises(DragomanError, match="File name too long"):
        opening(tmp_path / ("x" * 300))


def test_a_lock_that_cannot_be_written_is_one_line(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    folder.lock_path.mkdir()
    with pytest.raises(DragomanError, match=r"cannot lock .*: Is a directory"):
        lock_run(folder)


def test_a_disk_without_locks_is_not_taken_for_a_second_process(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    folder = create_run_folder(tmp_path / "run")
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(DragomanError, match="No locks available"):
        lock_run(folder, patience_seconds=0.0)
    assert not is_locked(folder)


def test_a_run_is_claimed_by_one_process_at_a_time(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    assert not is_locked(folder)
    claim = lock_run(folder)
    assert is_locked(folder)
    with pytest.raises(DragomanError, match="being trained by another process"):
        lock_run(folder, patience_seconds=0.0)
    claim.close()
    assert not is_locked(folder)
    lock_run(folder).close()
