"""Entering a host: called as ssh is, and how signals and exit codes pass."""

import signal
import subprocess
import sys

import pytest

from dragoman.errors import DragomanError
from dragoman.launch.lab.disk import _unescape, private_folders
from dragoman.launch.lab.entry import split_ssh_arguments, wait_forwarding
from dragoman.launch.lab.foreground import check_command


@pytest.mark.parametrize(
    ("arguments", "target", "words"),
    [
        (["b", "hostname"], "b", ["hostname"]),
        (["-o", "ConnectTimeout=5", "-oBatchMode=yes", "-p", "22", "-T", "me@b", "ls -l"], "me@b", ["ls -l"]),
        (["-tt", "b"], "b", []),
        (["b", "-o", "x"], "b", ["-o", "x"]),
    ],
)
def test_arguments_are_those_of_the_ssh_client(arguments, target, words):
    assert split_ssh_arguments(arguments) == (target, words)


def test_no_target_is_no_call():
    with pytest.raises(SystemExit, match="usage"):
        split_ssh_arguments(["-o", "x"])


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="labs need Linux")

WAITER = """
import subprocess, sys
from dragoman.launch.lab.entry import wait_forwarding
print("waiting", flush=True)
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
sys.exit(wait_forwarding(child.pid, float(sys.argv[2])))
"""


POLITE = "import signal,sys; signal.signal({0}, lambda *_: sys.exit(7)); print('ready', flush=True); signal.pause()"
DEAF = "import signal,time; signal.signal({0}, signal.SIG_IGN); print('ready', flush=True); time.sleep(2)"


@linux_only
@pytest.mark.parametrize(
    ("program", "number", "code"),
    [
        ("import sys; sys.exit(3)", None, 3),
        ("import os; os.kill(os.getpid(), 9)", None, 128 + 9),
        (POLITE, 15, 7),
        (POLITE, 2, 7),
        (DEAF, 15, 128 + 15),
    ],
)
def test_signals_reach_the_command_and_its_exit_code_comes_back(program, number, code):
    command = [sys.executable, "-c", WAITER, program.format(number), "0.3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waiting\n"
        if number is not None:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
        assert process.wait(20) == code


@linux_only
def test_waiting_leaves_signals_as_they_were():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.returncode = wait_forwarding(child.pid)
    assert child.returncode == 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_command_that_is_not_there_is_said_before_hosts_are_made():
    check_command(["sh"])
    with pytest.raises(DragomanError, match="there is no command nonsense"):
        check_command(["nonsense", "x"])


def test_paths_of_mounts_are_read_as_linux_writes_them():
    assert _unescape("/home/Jürgen/my\\040data\\134n".encode()) == "/home/Jürgen/my data\\n"


def test_folders_inside_others_need_no_overlay_of_their_own(tmp_path):
    (tmp_path / "home" / "work").mkdir(parents=True)
    home, work = str(tmp_path / "home"), str(tmp_path / "home" / "work")
    assert private_folders(home, work) == [home]
    assert private_folders(work, home) == [home]
    assert private_folders("/nowhere", work) == [work]
    assert private_folders("/", work) == [work]
