"""What a viewer shows and answers; the run itself is somebody else's."""

import io
import os
import signal
from contextlib import nullcontext

import pytest
import typer

from dragoman.commands.stop import stop as stop_command
from dragoman.errors import DragomanError
from dragoman.launch.control import viewer
from dragoman.launch.control.run_ops import look, stop_run
from dragoman.launch.control.viewer import Place, follow, open_place
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.session import HostSession
from dragoman.launch.hosts.ssh import UnreachableError
from dragoman.run.control import Control, hosts_log_path, write_control
from dragoman.run.folder import RunFolder, create_run_folder, lock_run
from stand_in_hosts import stand_in_hosts


class Scripted(Place):
    """Answers in turn; notes what was asked."""

    def __init__(self, *answers: dict) -> None:
        super().__init__("runs/x")
        self.answers = list(answers)
        self.asked: list[tuple[str, dict]] = []

    def ask(self, op, timeout_seconds=30.0, **arguments):
        self.asked.append((op, arguments))
        if op in ("stop_run", "answer_run"):
            return {}
        answer = self.answers.pop(0)
        if answer.pop("interrupt", False):
            os.kill(os.getpid(), signal.SIGINT)
        if "warning" in answer:
            os.kill(os.getpid(), answer.pop("warning"))
        standing = {"is_alive": True, "state": "running", "exit_code": None, "question": None}
        return {"text": "", "offset": 7, **standing, **answer}


ENDED = {"is_alive": False, "state": "ended", "exit_code": 1}


def test_it_shows_lines_until_the_end_and_gives_the_runs_code(capsys):
    place = Scripted({"text": "one\n", "offset": 4}, {}, {"text": "two\n", **ENDED, "offset": 8}, ENDED)
    assert follow(place, lambda _: None, 20) == 1
    assert capsys.readouterr().out == "one\ntwo\n"
    assert [arguments["offset"] for _, arguments in place.asked] == [None, 4, 7, 8]


def test_a_killed_controller_is_one_line():
    said = []
    assert follow(Scripted({"is_alive": False}), said.append, 20) == 1
    assert "the controller of this run was killed" in said[0]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "is_yes"), [("y\n", True), ("Yes\n", True), ("\n", False), ("n\n", False), ("", False)]
)
def test_a_question_of_the_run_is_put_on_a_terminal(monkeypatch, capsys, typed, is_yes):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    place = Scripted({"question": "31 s a step. Continue?"}, ENDED)
    follow(place, lambda _: None, 20)
    assert "31 s a step. Continue? [y/N] " in capsys.readouterr().err
    assert ("answer_run", {"is_yes": is_yes}) in place.asked


def test_without_a_terminal_nobody_answers(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    place = Scripted({"question": "Continue?"}, ENDED)
    follow(place, lambda _: None, 20)
    assert [op for op, _ in place.asked] == ["look", "look"]


def test_ctrl_c_without_a_terminal_detaches(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    said = []
    place = Scripted({"interrupt": True})
    assert follow(place, said.append, 20) == 0
    assert said == ["detached: the run goes on; dragoman attach runs/x shows it again"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("typed", "is_stopped"), [("\n", False), ("d\n", False), ("s\n", True), ("stop\n", True)])
def test_ctrl_c_on_a_terminal_asks(monkeypatch, capsys, typed, is_stopped):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    place = Scripted({"interrupt": True}, {**ENDED, "exit_code": 130})
    assert follow(place, lambda _: None, 20) == (130 if is_stopped else 0)
    assert "detach (default) or stop?" in capsys.readouterr().err
    assert ("stop_run" in [op for op, _ in place.asked]) == is_stopped


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_warning_to_the_command_that_started_the_run_is_meant_for_the_run(number):
    said = []
    place = Scripted({"warning": number}, {**ENDED, "exit_code": 143})
    assert follow(place, said.append, 20, is_owner=True) == 143
    assert ("stop_run", {"is_now": False, "is_preempted": True}) in place.asked
    assert said == ["told to leave: the workers save first"]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_who_only_looks_takes_no_warning_for_the_run():
    handlers = []

    class Looking(Scripted):
        def ask(self, op, timeout_seconds=30.0, **arguments):
            handlers.append(signal.getsignal(signal.SIGTERM))
            return super().ask(op, timeout_seconds, **arguments)

    follow(Looking(ENDED), lambda _: None, 20)
    assert handlers == [signal.SIG_DFL]


def test_a_run_that_ended_while_the_question_stood_gives_its_last_lines_and_code(monkeypatch, capsys):
    class Over(Scripted):
        def ask(self, op, timeout_seconds=30.0, **arguments):
            if op == "stop_run":
                raise DragomanError("runs/x is not running: it ended (finished)")
            return super().ask(op, timeout_seconds, **arguments)

    ended = {**ENDED, "exit_code": 0}
    monkeypatch.setattr("sys.stdin", Terminal("s\n"))
    place = Over({"interrupt": True}, {"text": "last\n", **ended}, {"text": "last\n", **ended}, ended)
    assert follow(place, lambda _: None, 20) == 0
    assert capsys.readouterr().out == "last\n"
    monkeypatch.setattr("sys.stdin", Terminal("s\n"))
    with pytest.raises(DragomanError):  # it still runs: then the error is one
        follow(Over({"interrupt": True}, {}), lambda _: None, 20)


def test_a_broken_connection_is_made_again(monkeypatch):
    monkeypatch.setattr(viewer.time, "sleep", lambda _: None)
    opened = []

    class Broken(HostSession):
        def __init__(self, host) -> None:
            super().__init__(host)
            opened.append(host)

        def open(self) -> None:
            if len(opened) in (2, 3):
                raise UnreachableError("does not answer")

        def call(self, op, **arguments):
            if len(opened) == 1 and arguments["offset"] == 3:
                raise UnreachableError("the connection broke")
            return {"op": op, **arguments}

    monkeypatch.setattr(viewer, "HostSession", Broken)
    place = Place("run", Host("a", "me@a"))
    place.ask("look", offset=0)
    answer = place.ask("look", offset=3)
    assert (answer["op"], answer["run"], answer["offset"], len(opened)) == ("look", "run", 3, 4)


def test_a_host_that_never_answered_is_said_at_once(monkeypatch):
    monkeypatch.setattr(viewer.time, "sleep", lambda _: pytest.fail("it tries again"))
    closed = []

    class Refused(HostSession):
        def open(self) -> None:
            raise UnreachableError("refuses the key")

        def close(self) -> None:
            closed.append(self.host.name)

    monkeypatch.setattr(viewer, "HostSession", Refused)
    with pytest.raises(UnreachableError, match=r"^a: refuses the key"):
        Place("run", Host("a", "me@a")).ask("look")
    assert closed == ["a"]


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"state": "ended", "exit_code": 130, "reason": "stopped"}, 0, "stopped in 2.0 s; no worker is left on a, b"),
        ({"state": "ended", "exit_code": 0, "reason": "finished"}, 0, "finished in 2.0 s; no worker is left on a, b"),
        ({"state": "ended", "exit_code": 1, "reason": "host b stopped answering"}, 1, "host b stopped answering; look"),
        ({"state": "stopping", "exit_code": None, "reason": ""}, 1, "the controller died"),
    ],
)
def test_that_no_worker_is_left_is_said_only_where_it_is_known(monkeypatch, capsys, answer, code, words):
    monkeypatch.setattr(viewer, "stop", lambda *_: {"seconds": 2.0, "members": ["a", "b"], **answer})
    with pytest.raises(typer.Exit) if code else nullcontext() as caught:
        stop_command("runs/x")
    assert code == (caught.value.exit_code if caught else 0)
    said = "".join(capsys.readouterr())
    assert words in said
    assert ("no worker is left" in said) == (code == 0)


def controlled(path, state="running", pid=2**22 + 5, **changes) -> RunFolder:
    folder = create_run_folder(path)
    write_control(folder, Control(state, 1, pid, 0.0, "a", "10.0.0.1", 7, ({"name": "a"},), **changes))
    hosts_log_path(folder).write_text("".join(f"line {number}\n" for number in range(30)) + "half a li")
    return folder


def test_a_look_begins_with_the_last_lines_and_goes_on_from_there(tmp_path):
    folder = controlled(tmp_path / "run", "ended", exit_code=0, reason="finished")
    answer = look(str(folder.path), num_last=2)
    assert answer["text"] == "line 28\nline 29\n"
    assert (answer["is_alive"], answer["state"], answer["exit_code"]) == (False, "ended", 0)
    with hosts_log_path(folder).open("a") as log:
        log.write("ne\n")
    assert look(str(folder.path), offset=answer["offset"])["text"] == "half a line\n"
    assert look(str(folder.path), num_last=100)["text"].startswith("line 0\n")


def test_attach_reaches_a_run_on_another_host(tmp_path, monkeypatch, capsys):
    stand_in_hosts(tmp_path, monkeypatch, "a")
    controlled(tmp_path / "a" / "runs" / "x", "ended", exit_code=130, reason="stopped")
    with open_place("me@a:runs/x") as place:
        assert place.name == "me@a:runs/x"
        assert follow(place, lambda _: None, 1) == 130
        with pytest.raises(DragomanError, match=r"a: runs/x is not running: it ended \(stopped\)"):
            viewer.stop(place, is_now=False)
    assert capsys.readouterr().out == "line 29\n"


def test_what_is_not_running_is_said(tmp_path, trained_run):
    with pytest.raises(DragomanError, match="is not a run folder"):
        stop_run(str(tmp_path / "nothing"))
    with pytest.raises(DragomanError, match="its controller on a is gone"):
        stop_run(str(controlled(tmp_path / "killed").path))
    with pytest.raises(DragomanError, match="never ran on several hosts"):
        stop_run(str(trained_run))
    with (
        lock_run(RunFolder(trained_run)),
        pytest.raises(DragomanError, match="on one machine and belongs to the command that started it"),
    ):
        stop_run(str(trained_run))
