"""One connection per host: questions, answers, and what a broken connection says."""

import json
import os
import subprocess
import sys
import time

import pytest

from dragoman.errors import DragomanError
from dragoman.launch.hosts import session as session_module
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.session import HostSession, call_all, call_each, open_sessions
from dragoman.launch.hosts.ssh import UnreachableError, explain_failure, python_command, ssh_command
from stand_in_hosts import stand_in_hosts

SERVER = """
import sys, time
from dragoman.errors import DragomanError
from dragoman.launch.hosts.session import serve_session

def refuse(): raise DragomanError("no", "say please")
def speak(): print("to nobody"); return "spoken"
serve_session({"add": lambda a, b: a + b, "refuse": refuse, "speak": speak, "sleep": lambda secs: time.sleep(secs),
               "break": lambda: 1 / 0, "die": lambda: sys.exit("the disk is on fire")})
"""


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    """Hosts a and b, on which a small set of ops answers."""
    stand_in_hosts(tmp_path, monkeypatch, "a", "b")
    monkeypatch.setattr(session_module, "FAR_SIDE", ("-c", SERVER))
    return [Host("a", "a"), Host("b", "me@b")]


def test_questions_and_answers(hosts):
    with HostSession(hosts[0]) as session:
        assert session.call("add", a=2, b=3) == 5
        assert session.call("speak") == "spoken"
        assert session.call("add", a=[1], b=["ü"]) == [1, "ü"]


def test_what_the_other_side_refuses_is_raised_here_with_its_name(hosts):
    with HostSession(hosts[0]) as session:
        with pytest.raises(DragomanError, match=r"^a: no") as raised:
            session.call("refuse")
        assert raised.value.hint == "say please"
        with pytest.raises(DragomanError, match="a: ZeroDivisionError"):
            session.call("break")
        assert session.call("add", a=1, b=1) == 2


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_far_side_that_hears_nothing_any_more_leaves(hosts, monkeypatch, is_alive):
    """As when the machine that asked has lost its power: its connection is not even closed."""
    quick = "from dragoman.launch.hosts import session; session.SILENT_SECONDS = 1.0" + SERVER
    monkeypatch.setattr(session_module, "FAR_SIDE", ("-c", quick))
    monkeypatch.setattr(session_module, "ALIVE_SECONDS", 0.2 if is_alive else 60.0)
    with HostSession(hosts[0]) as session:
        assert session.call("add", a=2, b=3) == 5
        time.sleep(2.5)
        assert (session._process.poll() is None) == is_alive
        if is_alive:
            assert session.call("add", a=2, b=3) == 5


def test_a_late_answer_ends_the_session(hosts):
    with HostSession(hosts[0]) as session:
        with pytest.raises(DragomanError, match="a: gave no answer to 'sleep' in time"):
            session.call("sleep", timeout_seconds=0.2, secs=20)
        with pytest.raises(DragomanError, match="in time"):
            session.call("add", a=1, b=1)


def test_the_last_words_of_a_side_that_died(hosts):
    with HostSession(hosts[0]) as session, pytest.raises(DragomanError, match="a: ended early: the disk is on fire"):
        session.call("die")


def test_the_other_side_ends_with_the_session(hosts):
    with HostSession(hosts[0]) as session:
        process = session._process
    assert process.returncode == 0
    assert session.failure is not None


def test_ctrl_c_in_the_terminal_is_not_for_the_ssh_client(hosts):
    with HostSession(hosts[0]) as session:
        assert os.getpgid(session._process.pid) != os.getpgrp()


def test_what_a_login_shell_prints_is_passed_over(hosts, monkeypatch):
    monkeypatch.setattr(session_module, "FAR_SIDE", ("-c", "print('Welcome!\\n{}')\n" + SERVER))
    with HostSession(hosts[0]) as session:
        assert session.call("add", a=1, b=1) == 2


def test_calls_to_several_hosts_run_side_by_side(hosts):
    with open_sessions(hosts) as sessions:
        start = time.monotonic()
        call_all(sessions, "sleep", secs=1.0)
        assert time.monotonic() - start < 1.8
        assert call_each(sessions, "add", [{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == [3, 7]


def test_refusals_of_several_hosts_are_one_error(hosts):
    with open_sessions(hosts) as sessions, pytest.raises(DragomanError) as raised:
        call_all(sessions, "refuse")
    assert "a: no; say please" in raised.value.message
    assert "b: no; say please" in raised.value.message


def test_a_host_that_cannot_be_reached_does_not_hold_up_the_others(hosts):
    with open_sessions([hosts[0], Host("zz", "zz")]) as sessions:
        assert sessions[0].call("add", a=1, b=1) == 2
        assert isinstance(sessions[1].failure, UnreachableError)
        with pytest.raises(DragomanError, match="zz: its name does not resolve"):
            sessions[1].call("add", a=1, b=1)


def test_no_ssh_client(hosts, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_SSH", "/nowhere/ssh -F x")
    with pytest.raises(DragomanError, match="a: cannot be reached: /nowhere/ssh does not start"), HostSession(hosts[0]):
        pass


@pytest.mark.parametrize(
    ("complaint", "problem"),
    [
        ("ssh: Could not resolve hostname b: Name or service not known", "its name does not resolve"),
        ("ssh: connect to host b port 22: Connection refused", "refuses the connection"),
        ("ssh: connect to host b port 22: Connection timed out", "does not answer within 5 s"),
        ("me@b: Permission denied (publickey).", "does not accept your ssh key"),
        ("Host key verification failed.", "host key that is not known"),
        ("kex_exchange_identification: read: Connection reset", "ssh cannot reach it: kex_exchange"),
    ],
)
def test_what_ssh_complains_about(hosts, tmp_path, complaint, problem):
    (tmp_path / "b" / "complaint").write_text(complaint)
    with pytest.raises(UnreachableError, match=problem), HostSession(hosts[1]):
        pass


@pytest.mark.parametrize(
    ("code", "stderr", "problem"),
    [
        (1, "/usr/bin/python3: Error (ModuleNotFoundError: No module named 'dragoman')", "has no Dragoman"),
        (1, "python3: No module named dragoman.commands.on_host", "another version of Dragoman"),
        (1, "ModuleNotFoundError: No module named 'psutil'", "a package missing"),
        (127, "sh: 1: exec: python3: not found", "no Python"),
    ],
)
def test_what_python_complains_about(code, stderr, problem):
    error = explain_failure(Host("b", "b"), code, stderr)
    assert problem in error.message and "dragoman setup" in error.hint
    assert not isinstance(error, UnreachableError)


def test_the_client_is_called_as_ssh_is(monkeypatch):
    monkeypatch.setenv("DRAGOMAN_SSH", "ssh -F 'my config'")
    command = ssh_command(Host("b", "me@b", 2201), "echo 'a b'")
    assert command[:3] == ["ssh", "-F", "my config"]
    assert command[-4:] == ["-p", "2201", "me@b", "echo 'a b'"]
    assert {"BatchMode=yes", "ConnectTimeout=5"} <= set(command)


def python_on_host(host: Host, home, **environment: str) -> str:
    command = python_command(host, ["-c", "import sys; print(sys.executable)"])
    done = subprocess.run(["sh", "-c", command], env={"HOME": str(home), **environment}, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


def test_which_python_runs_on_a_host(tmp_path, monkeypatch):
    """Named by the user, made by setup, at our own path, or whatever there is; decided on the host."""
    for name in ("mine", ".dragoman/venv/bin/python", "bin/python3"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {name}\n")
        path.chmod(0o755)
    path = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    assert python_on_host(Host("a", "a", python="~/mine"), tmp_path, **path) == "mine"
    assert python_on_host(Host("a", "a", python=f"{tmp_path}/mine"), tmp_path, **path) == "mine"
    assert python_on_host(Host("a", "a"), tmp_path, **path) == sys.executable, "half a virtual environment counts"
    (tmp_path / ".dragoman/venv/ready").touch()
    assert python_on_host(Host("a", "a"), tmp_path, **path) == ".dragoman/venv/bin/python"
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (tmp_path / ".dragoman/venv/ready").unlink()
    assert python_on_host(Host("a", "a"), tmp_path, **path) == "bin/python3"


def test_answers_are_lines_of_json():
    done = subprocess.run(
        [sys.executable, "-c", SERVER], input='{"op": "add", "a": 1, "b": 2}\n{"op": "nothing"}\nrubbish\n',
        capture_output=True, text=True,
    )  # fmt: skip
    ready, *answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert ready == {"dragoman": "ready"}
    assert [answer["ok"] for answer in answers] == [True, False, False]
