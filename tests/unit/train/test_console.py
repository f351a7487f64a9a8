"""What a person sees, and that a full disk does not stop the training."""

import io
import sys
import time
from pathlib import Path

import pytest

from dragoman.run.records import EvalRecord, StepRecord
from dragoman.train import console
from dragoman.train.console import Console


def a_step(step: int) -> StepRecord:
    return StepRecord(1, 0.0, step, 2.5, 2.0, 1e-3, 0.5, 90, 100, 4, 0.5)


def test_lines_go_to_the_screen_and_to_the_log(tmp_path, capsys):
    voice = Console(tmp_path / "log.txt", 100)
    voice.say("hello")
    voice.evaluation(EvalRecord(1, 0.0, 40, "dev", 3.2, 3.1, 12.3, 40.0, None, None, 2, 2, 20, 0.1, 0.2))
    shown = capsys.readouterr().err
    assert shown == "hello\nstep 40  dev  loss 3.200  train loss 3.100  BLEU 12.3  chrF 40.0\n"
    logged = (tmp_path / "log.txt").read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in logged] == shown.splitlines()


def test_progress_has_speed_loss_rate_and_remaining_time(tmp_path, capsys, monkeypatch):
    """Four steps took 60 s, validation included, and the last one 0.5 s: the other sixty will take 15 min."""
    voice = Console(tmp_path / "log.txt", 100)
    for step in (37, 38, 39):
        voice.step(a_step(step))
    now = time.monotonic()
    monkeypatch.setattr(console.time, "monotonic", lambda: now + 60)
    voice.step(a_step(40))
    shown = capsys.readouterr().err
    assert shown == "step 40/100  loss 2.500  200 target tokens/s  0.5 s/step  rate 1.00e-03  left 15 min 00 s\n"


def test_without_a_terminal_progress_is_rare(tmp_path, capsys):
    voice = Console(tmp_path / "log.txt", 100)
    for step in range(1, 50):
        voice.step(a_step(step))
    assert capsys.readouterr().err == ""


def test_on_a_terminal_one_line_lives(tmp_path, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(console, "LIVE_SECONDS", 0.0)
    voice = Console(tmp_path / "log.txt", 100)
    voice.step(a_step(1))
    voice.step(a_step(2))
    voice.say("saved")
    assert "\n" not in screen.getvalue().partition("saved")[0]
    assert screen.getvalue().endswith("\r\x1b[Ksaved\n")
    assert "step 2" not in (tmp_path / "log.txt").read_text()


def test_other_ranks_are_silent(capsys):
    voice = Console(None, 100)
    voice.say("hello")
    voice.step(a_step(1))
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_log_that_cannot_be_written_does_not_stop_the_run(capsys):
    voice = Console(Path("/dev/full"), 100)
    voice.say("hello")
    voice.say("again")
    assert capsys.readouterr().err == "hello\nagain\n"
