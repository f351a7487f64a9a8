"""Checkpoints: whole or not at all, verified when read, thinned out, averaged."""

import errno
import json
import math
import os
import re
import subprocess
from pathlib import Path

import pytest
import torch
from checkpoint_training import CPU, Training, save
from safetensors import SafetensorError

from dragoman.dist.world import World
from dragoman.model.weights import load_tensors
from dragoman.recipe import load_recipe
from dragoman.run.checkpoint_files import OPTIMIZER, RECIPE, STATE, VOCAB, WEIGHTS, find_damage
from dragoman.run.folder import create_run_folder
from dragoman.run.records import EvalRecord
from dragoman.train import checkpoint_write
from dragoman.train.checkpoint_keep import keep_checkpoints
from dragoman.train.checkpoint_restore import read_progress
from dragoman.train.checkpoint_write import save_average
from dragoman.train.progress import Progress
from dragoman.train.scale import FIRST, LossScale
from small_runs import tiny_recipe
from thread_worlds import run_ranks


@pytest.fixture
def training(tmp_path) -> Training:
    return Training(tmp_path)


def restored(training: Training, tmp_path: Path) -> tuple[Training, Progress, list[str]]:
    """Another process's view of the same run folder."""
    (tmp_path / "other").mkdir()
    other = Training(tmp_path / "other")
    other.folder = training.folder
    return other, *other.checkpoints().restore()


def test_a_checkpoint_has_all_that_is_needed_to_go_on_or_to_translate(training):
    sizes = training.save(3)
    path = training.folder.step_checkpoint(3)
    assert set(sizes) == {WEIGHTS, OPTIMIZER, STATE, RECIPE, VOCAB}
    assert sizes == {file.name: file.stat().st_size for file in path.iterdir()}
    assert (path / VOCAB).read_bytes() == b"pieces"
    assert load_recipe(str(path / RECIPE)) == tiny_recipe("checkpoint.keep_last=100", "sync.method=dense")
    assert training.folder.pointed_step("last") == 3
    assert find_damage(path) is None


def test_the_newest_checkpoint_is_restored_bit_for_bit(training, tmp_path):
    training.save(1, 2)
    other, progress, notes = restored(training, tmp_path)
    assert progress == Progress(2, target_tokens=200, best_loss=0.5, best_loss_step=2)
    assert notes == []
    for ours, theirs in zip(training.model.parameters(), other.model.parameters(), strict=True):
        assert ours.equal(theirs)
    mine = training.optimizer.tensors()
    for name, tensor in other.optimizer.tensors().items():
        assert tensor.equal(mine[name]), name


@pytest.mark.parametrize(("was_fp16", "value"), [(True, FIRST / 2), (False, FIRST)])
def test_a_rank_that_lost_its_checkpoint_takes_the_scale_of_the_first(tmp_path, was_fp16, value):
    """Where the first has one: a checkpoint of an earlier version has none."""
    scale = LossScale(CPU)
    scale.note(torch.tensor(torch.inf))
    (tmp_path / "first").mkdir()
    saved = Training(tmp_path / "first", scale if was_fp16 else None)
    saved.save(1)

    def restore(world: World) -> tuple[float, bool]:
        path = tmp_path / str(world.rank)
        path.mkdir()
        own = LossScale(CPU)
        training = Training(path, own)
        if world.is_first:
            training.folder = saved.folder
        training.checkpoints(world).restore()
        mine, theirs = training.optimizer.tensors(), saved.optimizer.tensors()
        return float(own.value), all(mine[name].equal(theirs[name]) for name in mine if "exp_avg" in name)

    assert run_ranks(2, restore) == [(value, True)] * 2


def test_a_run_goes_back_to_the_newest_checkpoint_of_an_earlier_step(training):
    training.save(2, 4, 6)
    progress = Progress(6, target_tokens=600, trained_seconds=7.0)
    earlier, notes = training.checkpoints().roll_back(6)
    assert earlier is not None and notes == []
    assert training.folder.pointed_step("last") == 4
    assert all(tensor.equal(training.weights(4)[name]) for name, tensor in training.model.state_dict().items())
    progress.roll_back(earlier, rate_factor=0.5)
    kept = {"trained_seconds": 7.0, "rate_factor": 0.5}
    assert progress == Progress(4, target_tokens=400, best_loss=0.25, best_loss_step=4, **kept)


def test_without_an_earlier_checkpoint_nothing_is_changed(training):
    training.save(2, 4)
    before = training.flat.weights.clone()
    assert training.checkpoints().roll_back(2) == (None, [])
    assert training.flat.weights.equal(before)
    assert training.folder.pointed_step("last") == 4


def test_a_checkpoint_of_an_earlier_version_has_the_whole_rate(training):
    training.save(1)
    path = training.folder.step_checkpoint(1)
    state = json.loads((path / STATE).read_text())
    del state["rate_factor"]
    (path / STATE).write_text(json.dumps(state))
    assert read_progress(path)["rate_factor"] == 1.0


def test_without_a_checkpoint_a_run_starts_afresh(training, tmp_path):
    _, progress, notes = restored(training, tmp_path)
    assert progress == Progress()
    assert notes == []


def flip(path: Path) -> None:
    """One bit, in the middle: of `state.json` that is a digit, and it stays valid JSON."""
    data = bytearray(path.read_bytes())
    place = len(data) // 2 if path.name != STATE else data.index(b'"target_tokens": 3') + len(b'"target_tokens": ')
    data[place] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink])
@pytest.mark.parametrize("name", [WEIGHTS, OPTIMIZER, STATE, RECIPE, VOCAB])
def test_a_damaged_checkpoint_is_passed_over_and_noted(training, tmp_path, damage, name):
    training.save(1, 2, 3)
    damage(training.folder.step_checkpoint(3) / name)
    other, progress, notes = restored(training, tmp_path)
    assert progress.step == 2
    assert len(notes) == 1
    assert "step-00000003 is damaged" in notes[0]
    assert name in notes[0]
    for key, tensor in training.weights(2).items():
        assert other.model.state_dict()[key].equal(tensor)


def test_if_all_are_damaged_every_one_is_noted(training, tmp_path):
    training.save(1, 2)
    for step in (1, 2):
        (training.folder.step_checkpoint(step) / WEIGHTS).unlink()
    _, progress, notes = restored(training, tmp_path)
    assert progress == Progress()
    assert len(notes) == 2


def test_a_damaged_checkpoint_is_written_anew_when_its_step_is_done_again(training):
    training.save(1, 2)
    flip(training.folder.step_checkpoint(2) / WEIGHTS)
    training.save(2)
    assert find_damage(training.folder.step_checkpoint(2)) is None


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_checkpoint_that_cannot_be_written_leaves_nothing_behind(training, monkeypatch, error):
    training.save(1)
    save_tensors = checkpoint_write.save_tensors

    def fail(tensors, path):
        if path.name == f".{OPTIMIZER}":
            raise error
        save_tensors(tensors, path)

    monkeypatch.setattr(checkpoint_write, "save_tensors", fail)
    saved = save(training.checkpoints(), Progress(2))
    assert re.search(r"cannot write the checkpoint .*: .*No space left", saved.problem)
    assert "\n" not in saved.problem
    assert "make room" in saved.hint
    assert sorted(path.name for path in training.folder.checkpoints_path.iterdir()) == [
        "best-loss",
        "last",
        "step-00000001",
    ]
    assert training.folder.pointed_step("last") == 1
    assert find_damage(training.folder.step_checkpoint(1)) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
def test_a_disk_that_is_really_full(training, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        training.folder = create_run_folder(disk / "run")
        training.save(1)
        problems = [save(training.checkpoints(), Progress(step)).problem for step in range(2, 20)]
        assert "No space left" in problems[-1]
        assert find_damage(training.folder.step_checkpoint(1)) is None
        assert not list(training.folder.checkpoints_path.glob(".step*"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_what_a_killed_process_left_half_written_is_neither_read_nor_in_the_way(training, tmp_path):
    training.save(1)
    half = training.folder.checkpoints_path / ".step-00000002.tmp"
    half.mkdir()
    (half / WEIGHTS).write_bytes(b"half")
    assert restored(training, tmp_path)[1].step == 1
    training.save(2)
    assert not half.exists()
    assert find_damage(training.folder.step_checkpoint(2)) is None


def test_the_newest_and_the_best_are_kept(training):
    training.save(1, 2, 3, 4, 5, 6)
    keep_checkpoints(training.folder, 2, Progress(6, best_loss_step=2, best_bleu_step=3))
    assert training.folder.step_checkpoints() == [2, 3, 5, 6]
    assert [training.folder.pointed_step(name) for name in ("best-loss", "best-bleu", "last")] == [2, 3, 6]


def test_no_pointer_leads_to_an_evaluation_without_checkpoint(training):
    training.save(1, 2)
    (training.folder.checkpoints_path / "best-loss").unlink()
    keep_checkpoints(training.folder, 5, Progress(2, best_loss_step=7))
    assert training.folder.step_checkpoints() == [1, 2]
    assert training.folder.pointed_step("best-loss") is None


def test_the_average_is_the_mean_of_the_newest(training):
    training.save(1, 2, 3)
    sizes = save_average(training.folder, 2, tiny_recipe(), training.vocab)
    assert set(sizes) == {WEIGHTS, STATE, RECIPE, VOCAB}
    averaged = load_tensors(training.folder.average_checkpoint / WEIGHTS)
    second, third = training.weights(2), training.weights(3)
    for name, tensor in averaged.items():
        assert not second[name].equal(third[name])
        assert torch.allclose(tensor, (second[name] + third[name]) / 2)
        assert tensor.dtype == second[name].dtype
    state = json.loads((training.folder.average_checkpoint / STATE).read_text())
    assert state["averaged_steps"] == [2, 3]
    assert find_damage(training.folder.average_checkpoint) is None


def evaluation(step: int, loss: float, bleu: float | None = None) -> EvalRecord:
    return EvalRecord(1, 0.0, step, "dev", loss, None, bleu, None, None, None, 1, 0, 1, 0.0, 0.0)


def test_a_better_loss_or_score_moves_its_pointer():
    progress = Progress()
    assert progress.note_evaluation(evaluation(10, 5.0, 1.0)) == ["best-loss", "best-bleu"]
    assert progress.note_evaluation(evaluation(20, 4.0, 1.0)) == ["best-loss"]
    assert progress.note_evaluation(evaluation(30, 4.5, 2.0)) == ["best-bleu"]
    assert progress.note_evaluation(evaluation(40, 4.0, None)) == []
    assert (progress.best_loss, progress.best_loss_step) == (4.0, 20)
    assert (progress.best_bleu, progress.best_bleu_step) == (2.0, 30)


def test_patience_counts_evaluations_without_a_better_loss():
    progress = Progress()
    for step, (loss, without_gain) in enumerate([(5, 0), (6, 1), (5, 2), (4, 0), (4.1, 1)], start=1):
        progress.note_evaluation(evaluation(step, loss, bleu=step))
        assert progress.num_evals_without_gain == without_gain


def test_a_loss_that_is_no_number_is_never_the_best():
    progress = Progress()
    assert progress.note_evaluation(evaluation(1, math.nan)) == []
    assert progress.note_evaluation(evaluation(2, 9.0)) == ["best-loss"]
