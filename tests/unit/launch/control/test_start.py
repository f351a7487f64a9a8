"""`train --hosts` through an ssh client that stays on this machine: everything but the network between hosts."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import changes
from dragoman.errors import DragomanError
from dragoman.launch.control import run_ops, start
from dragoman.launch.control.start import forwarded_environment
from dragoman.launch.hosts.members import Member, Team
from dragoman.run.control import is_alive, read_control
from dragoman.run.folder import RunFolder
from stand_in_hosts import stand_in_hosts

SETTINGS = ("sync.method=dense", "evaluate.decode=false", "evaluate.train_pairs=0", "train.max_steps=6")


def train(data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = ["train", "phrasebook", "--data", str(data), "--run", "runs/x", "--hosts", "a,b", *options]
    command = [sys.executable, "-m", "dragoman", *words, *changes(*SETTINGS, "evaluate.every_steps=6")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def hosts(tmp_path, monkeypatch) -> Path:
    return stand_in_hosts(tmp_path, monkeypatch, "a", "b")


def test_a_run_from_another_machine_lives_on_its_hosts(hosts, phrasebook_data):
    done = train(phrasebook_data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[a:0] finished at step 6" in done.stdout
    assert "started on a (1 x lo 127.0.0.1), b (1 x lo 127.0.0.2)" in done.stderr
    first, second = hosts / "a" / "runs/x", hosts / "b" / "runs/x"
    steps = [json.loads(line)["step"] for line in (first / "timing.rank-001.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 7))
    assert (second / "timing.rank-001.jsonl").read_text() == (first / "timing.rank-001.jsonl").read_text()
    assert not (second / "control.json").exists()
    manifest = json.loads((first / "manifest.json").read_text())
    assert [host["name"] for host in manifest["hosts"]] == ["a", "b"]
    assert manifest["attempts"][0]["command"].startswith("dragoman train phrasebook")


def test_what_is_wrong_on_the_first_host_is_said_here(hosts, phrasebook_data):
    (hosts / "a" / "runs/x").mkdir(parents=True)
    (hosts / "a" / "runs/x/thesis.tex").write_text("")
    done = train(phrasebook_data)
    assert done.returncode == 2
    assert "a: runs/x holds other files already" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_that_cannot_start_ends_the_controller_too(hosts, phrasebook_data):
    (hosts / "b" / "runs/x").mkdir(parents=True)
    (hosts / "b" / "runs/x/thesis.tex").write_text("")
    done = train(phrasebook_data)
    assert done.returncode == 2
    assert f"b: {hosts / 'b' / 'runs/x'} holds other files already" in done.stderr
    folder = RunFolder(hosts / "a" / "runs/x")
    deadline = time.monotonic() + 10
    while (control := read_control(folder)) is None or control.state != "ended" or is_alive(control, folder):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert control.reason == "stopped before it began"


def test_a_secret_of_the_first_host_goes_to_no_other(monkeypatch):
    given = []
    monkeypatch.setattr(start, "call_each", lambda _sessions, _op, tasks: given.extend(tasks))
    members = tuple(Member(name, name, None, None, "127.0.0.1", "lo", 1) for name in "ab")
    team = Team(members, "127.0.0.0/8", None, "data", "runs/x", "", is_first_here=True)
    session = Interrupted()
    start.start_run([session], team, [], 1, when_done="poweroff", first_environment={"DRAGOMAN_NOTIFY": "http://h/x"})
    assert ["DRAGOMAN_NOTIFY" in entry["task"]["environment"] for entry in given] == [True, False]
    (_, told) = session.asked[0]
    assert told["task"]["when_done"] == "poweroff"


def test_a_limit_that_is_reached_is_said_before_anything_starts(hosts, phrasebook_data):
    limits = ("--price", "3600", "--max-cost", "1000")
    assert train(phrasebook_data, *limits).returncode == 0
    done = train(phrasebook_data, "--price", "3600", "--max-cost", "0.000001")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1].startswith("the limit is reached (max_cost)")
    manifest = json.loads((hosts / "a" / "runs/x" / "manifest.json").read_text())
    assert (len(manifest["attempts"]), manifest["price_per_hour"]) == (1, 3600)


class Interrupted:
    """A session; Ctrl-C comes while its agent starts."""

    def __init__(self) -> None:
        self.asked = []

    def call(self, op, **arguments):
        self.asked.append((op, arguments))
        return {"address": "127.0.0.1", "port": 7}


def test_ctrl_c_while_agents_start_leaves_no_controller(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "call_each", interrupt)
    session = Interrupted()
    members = (Member("a", "a", None, None, "127.0.0.1", "lo", 1),)
    team = Team(members, "127.0.0.0/8", None, "data", "runs/x", "", is_first_here=True)
    with pytest.raises(KeyboardInterrupt):
        start.start_run([session], team, ["-c", ""], 1)
    assert session.asked[-1] == ("stop_run", {"run": "runs/x", "is_now": True})


def test_a_controller_that_does_not_come_up_in_time_is_ended(tmp_path, monkeypatch):
    started = []

    def start_idle(_module, _task, _output):
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[0]

    monkeypatch.setattr(run_ops, "start_detached", start_idle)
    monkeypatch.setattr(run_ops, "START_SECONDS", 0.2)
    with pytest.raises(DragomanError, match="the controller did not start: it said nothing"):
        run_ops.start_controller({"run": str(tmp_path)})
    assert started[0].returncode == -9


def test_what_the_user_set_for_workers_reaches_the_hosts_but_no_card(monkeypatch):
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth7")
    monkeypatch.setenv("SECRET", "x")
    given = forwarded_environment()
    assert given["NCCL_DEBUG"] == "INFO"
    assert not {"NCCL_SOCKET_IFNAME", "SECRET", "HOME"} & given.keys()
