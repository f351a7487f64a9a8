"""Real runs that their machine tells to leave: whichever process hears it, all is saved within seconds."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from command_line import changes
from dragoman.dist.elastic import run_workers
from dragoman.run.folder import parse_step
from small_runs import records

LEAVE_SECONDS = 15.0
ENDLESS = ("train.max_steps=1000000", "checkpoint.every_steps=3", "evaluate.decode=false", "evaluate.train_pairs=0")


def start(data: Path, run: Path, workers: int, *settings: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dragoman.cli", "train", "phrasebook", "--data", str(data), "--run", str(run)]
    command += ["--workers", str(workers), *changes(*ENDLESS, *settings)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)


def wait_for(is_true, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not is_true():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def worker_of(process: subprocess.Popen[str]) -> psutil.Process:
    found = psutil.Process(process.pid).children(recursive=True)
    return next(child for child in found if "dragoman.train.worker" in child.cmdline())


@pytest.mark.parametrize(
    ("workers", "number", "who"),
    [
        (1, signal.SIGUSR1, "command"),
        (2, signal.SIGUSR1, "command"),
        (1, signal.SIGTERM, "worker"),
        (2, signal.SIGTERM, "worker"),
        (1, signal.SIGTERM, "all"),  # as Slurm does
        (2, signal.SIGTERM, "all"),
    ],
)
def test_a_warned_run_saves_and_leaves_with_a_code_that_is_started_again(
    phrasebook_data, tmp_path, workers, number, who
):
    run = tmp_path / "run"
    process = start(phrasebook_data, run, workers)
    try:
        wait_for((run / "checkpoints" / "last").exists, process)
        left = psutil.Process(process.pid).children(recursive=True)
        for told in {"command": [process], "worker": [worker_of(process)], "all": [process, *left]}[who]:
            told.send_signal(number)
        _, said = process.communicate(timeout=LEAVE_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 143, said
    assert "Traceback" not in said
    end = records(run, "events")[-1]
    assert (end["kind"], end["detail"]) == ("stopped", {"reason": "preempted"})
    assert parse_step((run / "checkpoints" / "last").readlink().name) == end["step"]
    assert psutil.wait_procs(left, timeout=5)[1] == []


def test_signals_are_given_back_when_the_workers_have_ended():
    numbers = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    assert run_workers(["-c", "pass"], 2) == {}
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_warning_before_the_first_step_is_no_traceback(phrasebook_data, tmp_path):
    process = start(phrasebook_data, tmp_path / "run", 1)
    try:
        wait_for((tmp_path / "run").exists, process)
        process.send_signal(signal.SIGUSR1)
        _, said = process.communicate(timeout=LEAVE_SECONDS)
    finally:
        process.kill()
    assert (process.returncode, said) == (143, "")
