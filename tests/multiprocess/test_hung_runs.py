"""Real runs in which a rank stands still: the others say so, and the command ends and can be given again."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from command_line import changes
from small_runs import records

SETTINGS = (
    "evaluate.decode=false",
    "evaluate.train_pairs=0",
    "evaluate.every_steps=100000",
    "checkpoint.every_steps=5",
)


def train(data: Path, run: Path, *settings: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dragoman.cli", "train", "phrasebook", "--data", str(data), "--run", str(run)]
    command += ["--workers", "2", "--max-restarts", "0", *changes(*SETTINGS, *settings)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)


def wait_for(is_true: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not is_true():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_frozen_rank_ends_the_run_with_word_from_the_others(phrasebook_data, tmp_path):
    run = tmp_path / "run"
    process = train(phrasebook_data, run, "train.max_steps=1000000", "train.hang_minutes=0.05")
    workers: list[psutil.Process] = []
    try:
        wait_for((run / "checkpoints/last").exists, process)
        children = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in children if "dragoman.train.worker" in child.cmdline()]
        workers[1].send_signal(signal.SIGSTOP)
        wait_for(lambda: list(run.glob("hang.rank-*.txt")), process)
        workers[0].wait(20)  # it has spoken, and left by itself
        workers[1].kill()
        said = process.communicate(timeout=60)[1]
    finally:
        for child in (*workers, process):
            with contextlib.suppress(psutil.Error):
                child.kill()
    assert process.returncode == 1
    assert "no step has ended for" in said and "it is in exchange for" in said
    again = train(phrasebook_data, run, f"train.max_steps={records(run, 'events')[-1]['step'] + 5}")
    said = again.communicate(timeout=120)[1]
    assert again.returncode == 0, said
