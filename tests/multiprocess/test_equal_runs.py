"""One worker or two, interrupted or not: the same run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import changes, run_dragoman
from dragoman.model.weights import load_tensors
from dragoman.run.folder import lock_run, open_run_folder, parse_step


def train(data: Path, run: Path, workers: int, *settings: str, **options) -> None:
    run_dragoman(
        "train", "phrasebook", "--data", data, "--run", run, "--workers", workers, *changes(*settings), **options
    )


def losses(run: Path) -> list[float]:
    records = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    newest = {record["step"]: record["loss"] for record in records}
    return [newest[step] for step in sorted(newest)]


@pytest.mark.parametrize(("precision", "tolerance"), [("fp64", 1e-10), ("fp32", 1e-3)])
def test_two_or_three_workers_give_the_losses_of_one(phrasebook_data, tmp_path, precision, tolerance):
    """Four microbatches: three workers have unequal shares."""
    settings = ("train.max_steps=50", f"train.precision='{precision}'", "evaluate.every_steps=50")
    for workers in (1, 2, 3):
        train(phrasebook_data, tmp_path / str(workers), workers, *settings)
    one, *others = (losses(tmp_path / str(workers)) for workers in (1, 2, 3))
    assert len(one) == 50
    assert one[-1] < one[0]
    for several in others:
        assert max(abs(a - b) / a for a, b in zip(one, several, strict=True)) < tolerance


def test_a_run_that_goes_on_with_other_workers_makes_the_same_updates(phrasebook_data, tmp_path):
    """From 2 to 1 and from 2 to 3 in the middle, up to the order of summation."""
    settings = ("train.max_steps=50", "train.precision='fp64'", "evaluate.every_steps=50", "checkpoint.every_steps=20")
    whole = tmp_path / "whole"
    train(phrasebook_data, whole, 2, *settings)
    for workers in (1, 3):
        run = tmp_path / str(workers)
        shutil.copytree(whole, run, symlinks=True)
        for path in (run / "checkpoints").glob("*"):
            if path.is_symlink() or path.name != "step-00000020":
                path.unlink() if path.is_symlink() else shutil.rmtree(path)
        (run / "checkpoints/last").symlink_to("step-00000020")
        train(phrasebook_data, run, workers, *settings)
        records = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
        again = [record["loss"] for record in records if record["attempt"] == 2]
        assert len(again) == 30
        assert max(abs(a - b) / a for a, b in zip(losses(whole)[20:], again, strict=True)) < 1e-10
        ours, theirs = (load_tensors(path / "checkpoints/last/weights.safetensors") for path in (run, whole))
        assert max(float((ours[name] - tensor).abs().max()) for name, tensor in theirs.items()) < 1e-10


def test_killed_without_warning_it_goes_on_and_ends_with_the_same_bits(phrasebook_data, tmp_path):
    settings = ("train.max_steps=60", "evaluate.every_steps=30", "checkpoint.every_steps=5")
    train(phrasebook_data, tmp_path / "whole", 2, *settings)
    run = tmp_path / "killed"
    command = [sys.executable, "-m", "dragoman.cli", "train", "phrasebook", "--data", str(phrasebook_data)]
    command += ["--run", str(run), "--workers", "2", *changes(*settings)]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        wait_for(run / "checkpoints" / "last", process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (run / "checkpoints" / "step-00000060").exists(), "it was not killed in time to prove anything"
    train(phrasebook_data, run, 2, *settings)
    assert losses(run) == losses(tmp_path / "whole")
    for name in ("weights.safetensors", "optimizer.safetensors"):
        assert_same_tensors(tmp_path / "whole", run, name)
    attempts = json.loads((run / "manifest.json").read_text())["attempts"]
    assert [entry["attempt"] for entry in attempts] == [1, 2]


@pytest.mark.parametrize("method", ["int8", "powersgd", "diloco"])
def test_every_exchange_goes_on_from_its_state_with_the_same_bits(phrasebook_data, tmp_path, method):
    exchange = (f"sync.method='{method}'", "sync.replica='rank'", "sync.every_steps=4", "sync.dense_steps=3")
    settings = ("evaluate.every_steps=20", "checkpoint.every_steps=6", *exchange)
    train(phrasebook_data, tmp_path / "whole", 2, "train.max_steps=20", *settings)
    run = tmp_path / "halves"
    # The last step of a run is special (replicas are made equal): stop by the checkpoint of the middle instead.
    train(phrasebook_data, run, 2, "train.max_steps=20", *settings)
    for step in (18, 20):
        shutil.rmtree(run / "checkpoints" / f"step-{step:08d}")
    train(phrasebook_data, run, 2, "train.max_steps=20", *settings)
    assert len(json.loads((run / "manifest.json").read_text())["attempts"]) == 2
    assert losses(run) == losses(tmp_path / "whole")
    assert_same_tensors(tmp_path / "whole", run, "weights.safetensors")
    for rank in (0, 1):
        assert_same_tensors(tmp_path / "whole", run, f"rank-00{rank}.safetensors")


def test_a_run_goes_on_with_another_exchange(phrasebook_data, tmp_path):
    """Replicas have weights and averages of their own; dense ranks must not."""
    run = tmp_path / "run"
    diloco = ("sync.method='diloco'", "sync.replica='rank'")
    for steps, method in ((10, ()), (20, diloco), (30, ("sync.method='dense'",))):
        train(phrasebook_data, run, 2, f"train.max_steps={steps}", "evaluate.every_steps=10", *method)
    assert len(losses(run)) == 30
    evals = [json.loads(line)["loss"] for line in (run / "evals.jsonl").read_text().splitlines()]
    assert evals == sorted(evals, reverse=True)
    last = run / "checkpoints" / "last"
    assert (last / "optimizer.safetensors").exists()
    assert not list(last.glob("rank-*"))
    # Dense ranks that differ would give another loss on each: with one worker the run is the same.
    shutil.copytree(run, tmp_path / "one", symlinks=True)
    for folder, workers in ((run, 2), (tmp_path / "one", 1)):
        train(phrasebook_data, folder, workers, "train.max_steps=35", "evaluate.every_steps=35", "sync.method='dense'")
    assert losses(run)[30:] == pytest.approx(losses(tmp_path / "one")[30:], rel=1e-4)


def wait_for(path: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, "no checkpoint appeared"
        time.sleep(0.02)


def assert_same_tensors(a: Path, b: Path, name: str) -> None:
    ours, theirs = (load_tensors(run / "checkpoints" / "last" / name) for run in (a, b))
    assert ours.keys() == theirs.keys()
    for key, tensor in ours.items():
        assert tensor.equal(theirs[key]), key


def test_ctrl_c_saves_and_leaves(phrasebook_data, tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, "-m", "dragoman.cli", "train", "phrasebook", "--data", str(phrasebook_data)]
    command += ["--run", str(run), "--workers", "2", *changes("train.max_steps=100000", "checkpoint.every_steps=3")]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    wait_for(run / "checkpoints" / "last", process)
    os.killpg(process.pid, signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130, messages
    assert "stopped at step" in messages
    assert "Traceback" not in messages
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert events[-1]["kind"] == "stopped"
    saved = int((run / "checkpoints" / "last").readlink().name.removeprefix("step-"))
    assert saved == events[-1]["step"]


def test_workers_do_not_outlive_a_killed_command(phrasebook_data, tmp_path):
    """The command alone is killed: its workers save and leave, and the same command goes on from there."""
    run = tmp_path / "run"
    command = [sys.executable, "-m", "dragoman.cli", "train", "phrasebook", "--data", str(phrasebook_data)]
    command += ["--run", str(run), "--workers", "2", *changes("train.max_steps=100000", "checkpoint.every_steps=3")]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    wait_for(run / "checkpoints" / "last", process)
    process.kill()
    process.wait()
    lock_run(open_run_folder(run)).close()  # waits for the workers to be gone
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert events[-1]["kind"] == "stopped"
    assert parse_step((run / "checkpoints" / "last").readlink().name) == events[-1]["step"]
