"""Real runs on one machine that lose a worker: another attempt follows by itself, and ends with the same bits."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from command_line import changes, run_dragoman
from dragoman.model.weights import load_tensors
from small_runs import records

SETTINGS = (
    "evaluate.decode=false",
    "evaluate.train_pairs=0",
    "evaluate.every_steps=100000",
    "checkpoint.every_steps=5",
    "train.max_steps=40",
)


def command(data: Path, run: Path, workers: int) -> list[str]:
    words = ["train", "phrasebook", "--data", str(data), "--run", str(run), "--workers", str(workers)]
    return [*words, *changes(*SETTINGS)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_is_followed_by_an_attempt_that_ends_with_the_same_bits(phrasebook_data, tmp_path, workers):
    whole, run = tmp_path / "whole", tmp_path / "run"
    run_dragoman(*command(phrasebook_data, whole, workers))
    words = [sys.executable, "-m", "dragoman.cli", *command(phrasebook_data, run, workers)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not (run / "checkpoints/last").exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        children = psutil.Process(process.pid).children(recursive=True)
        [child for child in children if "dragoman.train.worker" in child.cmdline()][-1].send_signal(signal.SIGKILL)
        said = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert f"rank {workers - 1} on host" in said and "was killed by SIGKILL" in said and "attempt 2 follows" in said
    assert [event["attempt"] for event in records(run, "events") if event["kind"] == "finished"] == [2]
    ours, theirs = (load_tensors(path / "checkpoints/last/weights.safetensors") for path in (run, whole))
    assert all(ours[name].equal(tensor) for name, tensor in theirs.items())
    assert len(json.loads((run / "manifest.json").read_text())["attempts"]) == 2
