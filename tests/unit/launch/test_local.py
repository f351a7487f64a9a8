"""Workers on this machine: how they end, and how signals reach them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.launch import local
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.local import start_workers, threads_per_worker

LAUNCHER = "import sys; from dragoman.launch.local import start_workers; sys.exit(start_workers('program', ['a b'], 1))"


def launch(folder: Path, program: str) -> subprocess.Popen[str]:
    """A launcher in a process of its own, whose one worker is ready when this returns."""
    (folder / "program.py").write_text(f"import os, signal, sys\n{program}")
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=30)
    return process.returncode


def test_the_cores_are_shared_out(monkeypatch):
    monkeypatch.setattr(local.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [threads_per_worker(number) for number in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]


def test_threads_that_the_user_chose_stay(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(local, "_run_alone", lambda command: int(os.environ["OMP_NUM_THREADS"]))
    assert start_workers("module", [], 1) == 3


def test_one_worker_is_a_plain_child_with_its_arguments(tmp_path):
    process = launch(tmp_path, "print('ready', flush=True); sys.exit(len(sys.argv[1]) + (sys.argv[1] == 'a b'))")
    assert end(process) == 4


def test_several_workers_go_through_the_agent(monkeypatch):
    from dragoman.dist import elastic

    calls: list[tuple[list[str], int]] = []
    monkeypatch.setattr(elastic, "run_workers", lambda command, number: calls.append((command, number)) or {})
    assert start_workers("module", ["x"], 2) == 0
    assert calls == [(["-m", "module", "x"], 2)]


@pytest.mark.parametrize(
    ("failures", "code", "said"),
    [
        ({0: 1, 1: 2}, 2, ""),
        ({0: 75, 1: -9}, 1, "rank 1 on host .* was killed by SIGKILL"),
        ({0: 130, 1: 130}, 130, ""),
        ({-1: 143}, 143, ""),
    ],
)
def test_the_code_of_several_workers_is_that_of_the_guilty_one(monkeypatch, capsys, failures, code, said):
    from dragoman.dist import elastic

    monkeypatch.setattr(elastic, "run_workers", lambda *_: failures)
    assert start_workers("module", [], 2) == code
    assert re.match(said, capsys.readouterr().err)


def test_a_worker_that_was_killed_ends_as_a_shell_would_say(tmp_path):
    process = launch(tmp_path, "print('ready', flush=True); os.kill(os.getpid(), signal.SIGKILL)")
    assert end(process) == 128 + 9


def test_a_sigterm_meant_for_the_command_reaches_the_worker(tmp_path):
    """`timeout`, a container that stops, a batch system: all of them signal one process only."""
    program = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('ready', flush=True); signal.pause()"
    process = launch(tmp_path, program)
    process.send_signal(signal.SIGTERM)
    assert end(process) == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_warning_before_anybody_can_save_ends_the_command_in_order(number):
    before = signal.getsignal(number)
    taken_back = []
    with pytest.raises(SystemExit) as caught, local.leaving_when_warned():
        try:
            os.kill(os.getpid(), number)
        finally:
            taken_back.append(True)
    assert (caught.value.code, taken_back) == (143, [True])
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_worker_that_a_warning_catches_before_it_listens_was_warned(tmp_path, number):
    process = launch(tmp_path, "print('ready', flush=True); signal.pause()")
    process.send_signal(number)
    assert end(process) == 143


def test_after_ctrl_c_the_command_waits_for_the_worker_to_save(tmp_path):
    process = launch(tmp_path, "print('ready', flush=True); sys.stdin.readline(); sys.exit(5)")
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.stdin.write("saved\n")
    assert end(process) == 5


def test_the_card_is_the_one_that_has_or_reaches_the_address():
    assert local.card_towards("127.0.0.1") == local._loopback()
    assert local.card_towards("127.0.0.77") == local._loopback()


def test_a_first_host_that_others_cannot_reach_is_refused():
    with pytest.raises(DragomanError, match=r"127\.0\.0\.1 here, which other hosts cannot reach"):
        local.start_node([], [Host("here", "here", address="127.0.0.1")], 0, 1, 29400, None)
    with pytest.raises(DragomanError, match=r"no-such-host\.invalid does not resolve here"):
        local.start_node([], [Host("no-such-host.invalid", "x")], 0, 1, 29400, None)
    with pytest.raises(DragomanError, match=r"192\.0\.2\.1 is no address of this host"):
        local.start_node([], [Host("a", "a", address="192.0.2.1")], 0, 1, 29400, None)


def test_a_card_that_was_asked_for_counts_and_must_be_there(monkeypatch):
    from dragoman.dist import elastic

    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    monkeypatch.setattr(elastic, "run_node", lambda *_: seen.append(os.environ["GLOO_SOCKET_IFNAME"]) or {})
    seen: list[str] = []
    hosts = [Host("a", "a", address="192.0.2.1"), Host("b", "b")]
    assert local.start_node([], hosts, 1, 1, 29400, "lo") == 0
    assert seen == ["lo"]
    with pytest.raises(DragomanError, match="there is no network card nope0 here"):
        local.start_node([], hosts, 1, 1, 29400, "nope0")
