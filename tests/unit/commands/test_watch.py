"""`dragoman watch` as people and scripts use it."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from rich.console import Console

from dragoman.commands.watch import tensorboard_command
from dragoman.commands.watch_terminal import line, screen, sparkline
from dragoman.web.watch.live import LiveRun
from dragoman.web.watch.state import State
from growing_run import GrowingRun
from small_runs import dragoman_here
from stand_in_hosts import stand_in_hosts


@pytest.fixture
def run(tmp_path):
    grown = GrowingRun(tmp_path / "run")
    grown.steps(30)
    grown.samples(3)
    return grown


def start(run, *options):
    command = [sys.executable, "-m", "dragoman.cli", "watch", str(run.folder.path), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_how_it_stands_in_lines(run, monkeypatch, capsys):
    run.event("finding", code="network-bound", text="93 % of every step waits")
    assert dragoman_here(monkeypatch, "watch", run.folder.path, "--once") == 0
    out = capsys.readouterr().out
    assert out.startswith("running, step 30 of 1,000, loss ")
    assert "Time of a step: 0.5 s/step (2 steps/s" in out
    assert "finding network-bound, since step 30: 93 % of every step waits" in out


def test_how_it_stands_for_a_script(run, monkeypatch, capsys):
    run.steps(1, loss=float("nan"))
    assert dragoman_here(monkeypatch, "watch", run.folder.path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["step"], found["loss"], found["step_seconds"]) == ("running", 31, None, 0.5)


def test_a_run_that_is_not_there_yet_is_no_error(tmp_path, monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "watch", tmp_path / "none", "--once") == 0
    assert capsys.readouterr().out.startswith("waiting, no step yet")


def test_a_host_that_is_not_there_is_said_in_a_line(tmp_path, monkeypatch, capsys):
    stand_in_hosts(tmp_path, monkeypatch, "a")
    assert dragoman_here(monkeypatch, "watch", "nowhere:runs/mine", "--once") == 0
    out = capsys.readouterr().out
    assert out.startswith("no connection") and "nowhere" in out


def test_plain_lines_until_the_run_ends(run, monkeypatch, capsys):
    monkeypatch.setattr("dragoman.commands.watch_terminal.LINE_SECONDS", 0.2)

    def go_on():
        time.sleep(0.5)
        run.steps(1)
        time.sleep(0.5)
        run.event("finished", reason="max_steps")

    writer = threading.Thread(target=go_on)
    writer.start()
    assert dragoman_here(monkeypatch, "watch", run.folder.path, "--terminal") == 0
    writer.join()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3, "a line for each change"
    assert lines[1].startswith("running, step 31 of 1,000") and lines[2].startswith("finished, step 31")


def test_the_screen_of_a_terminal(run):
    run.event("finding", code="network-bound", text="[red]93 %[/red] waits")
    run.evaluate(2.5, bleu=11.0)
    live = LiveRun(run.folder)
    live.refresh()
    console = Console(width=90, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(screen(live, State("running", "Running"), "run", 90))
    text = console.export_text()
    for word in (
        "● Running",
        "Step 30 of 1,000",
        "0.5 s/step",
        "exchange 45 %",
        "9 MB/s",
        "[red]93 %[/red] waits",
        "█",
    ):
        assert word in text
    assert max(map(len, text.splitlines())) <= 90
    console.file.close()


def test_one_line_of_a_run_without_a_step(tmp_path):
    live = LiveRun(GrowingRun(tmp_path / "run").folder)
    live.refresh()
    assert line(live, State("starting", "Starting", "measuring")) == "starting, no step yet of 1,000: measuring"


def test_sparkline():
    points = [(float(x), 0.0, float(x), 0.0) for x in range(16)]
    assert sparkline(points, 8) == "▁▂▃▄▅▆▇█"
    assert sparkline(points[:1], 8) == "▁" and sparkline([], 8) == ""


def test_the_command_for_tensorboard(tmp_path, monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "watch", tmp_path / "my run", "--tensorboard") == 0
    assert re.search(r"tensorboard\S* --logdir '.*/my run/tensorboard'", capsys.readouterr().out)
    assert tensorboard_command("u@a:runs/x") == (
        "ssh -L 6006:localhost:6006 u@a 'tensorboard --logdir runs/x/tensorboard'"
    )


def test_a_port_that_is_taken_is_one_clear_line(run, monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert dragoman_here(monkeypatch, "watch", run.folder.path, "--port", str(port)) == 2
    error = capsys.readouterr().err
    assert f"port {port} is taken" in error and "--port 0" in error


def test_an_address_that_is_none(run, monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "watch", run.folder.path, "--host", "203.0.113.1", "--port", "0") == 2
    assert "cannot listen on 203.0.113.1" in capsys.readouterr().err


def test_a_page_until_ctrl_c(run):
    with start(run, "--port", "0") as process:
        address = re.search(r"http://127.0.0.1:\d+/", process.stdout.readline()).group()
        live = json.load(urllib.request.urlopen(f"{address}live"))
        assert live["step"] == "Step 30 of 1,000"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def test_bound_elsewhere_the_address_has_a_token(run):
    with start(run, "--port", "0", "--host", "0.0.0.0") as process:
        port, token = re.search(r"http://\S+:(\d+)/\?token=(\S{20,})", process.stdout.readline()).groups()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/live")
        assert refused.value.code == 403
        refused.value.close()
        process.terminate()
        assert process.wait(10) == 0
        assert token not in process.stdout.read() + process.stderr.read(), "printed once"
