"""`control.json`: whole or absent, and a controller that is gone is not taken for another process."""

import json
import os
import subprocess
import sys

import psutil
import pytest

from dragoman.errors import DragomanError
from dragoman.run.control import (
    CONTROLLER,
    CONTROLLER_LOCK,
    Control,
    control_path,
    is_alive,
    read_control,
    refuse_running,
    write_control,
)
from dragoman.run.folder import RunFolder, lock_file


def control(**changes) -> Control:
    values = {
        "state": "running",
        "attempt": 2,
        "pid": os.getpid(),
        "pid_started": psutil.Process().create_time(),
        "host": "a",
        "address": "10.0.0.1",
        "port": 7,
        "members": ({"name": "a"}, {"name": "b"}),
    }
    return Control(**{**values, **changes})


def test_it_is_read_as_it_was_written(tmp_path):
    folder = RunFolder(tmp_path)
    assert read_control(folder) is None
    write_control(folder, control(exit_code=1, reason="rank 1"))
    assert read_control(folder) == control(exit_code=1, reason="rank 1", time=read_control(folder).time)
    assert [path.name for path in tmp_path.iterdir()] == ["control.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": "running"}'])
def test_what_cannot_be_read_is_none(tmp_path, text):
    (tmp_path / "control.json").write_text(text)
    assert read_control(RunFolder(tmp_path)) is None


def test_keys_of_a_later_version_are_passed_over(tmp_path):
    folder = RunFolder(tmp_path)
    write_control(folder, control())
    values = json.loads(control_path(folder).read_text())
    control_path(folder).write_text(json.dumps({**values, "novelty": 1}))
    assert read_control(folder).attempt == 2


def test_a_number_that_was_given_out_again_is_not_the_controller(tmp_path):
    folder = RunFolder(tmp_path)
    assert is_alive(control(), folder)
    assert not is_alive(control(pid_started=psutil.Process().create_time() - 60), folder)
    assert not is_alive(control(pid=2**22 + 5), folder)


def test_the_lock_tells_whether_the_controller_lives_whatever_the_clock_says(tmp_path):
    folder = RunFolder(tmp_path)
    command = [sys.executable, "-c", "print(flush=True); input()", CONTROLLER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline(), "before it runs, the system may not know its command line yet"
        there = control(pid=process.pid, pid_started=1.0)
        with lock_file(tmp_path / CONTROLLER_LOCK, 0.0):
            assert is_alive(there, folder)
            assert not is_alive(control(), folder), "held on another machine, where this number is another program"
        assert not is_alive(there, folder), "the lock is free: that controller has ended"
        process.kill()


def test_a_run_with_a_living_controller_is_not_started_again(tmp_path):
    folder = RunFolder(tmp_path)
    refuse_running(folder)
    write_control(folder, control(pid=2**22 + 5))
    refuse_running(folder)
    write_control(folder, control())
    with pytest.raises(DragomanError, match="is running on a, b"):
        refuse_running(folder)
    write_control(folder, control(state="ended"))
    with pytest.raises(DragomanError, match="copied to its mirror"):
        refuse_running(folder)
