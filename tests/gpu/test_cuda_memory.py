"""Memory on a GPU: what is estimated suffices, what is free decides, and what does not fit is one line."""

import os
from pathlib import Path

import pytest
import torch

from command_line import changes, run_dragoman
from dragoman.plan.microbatches import needed_bytes
from dragoman.run.folder import RunFolder
from dragoman.run.reader import read_manifest
from small_runs import tiny_recipe, train_here

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
WIDE = (
    "model.d_model=512", "model.num_heads=8", "model.d_ffn=2048", "model.num_encoder_layers=4",
    "model.num_decoder_layers=4", "batch.num_microbatches=auto", "batch.target_tokens=16000",
    "train.max_steps=3", "evaluate.decode=false", "evaluate.train_pairs=0",
)  # fmt: skip


def test_training_takes_no_more_than_is_estimated(phrasebook_data, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_DEVICE", "cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    assert train_here(phrasebook_data, tmp_path / "run", *WIDE) == 0
    assert read_manifest(RunFolder(tmp_path / "run")).num_microbatches == 1
    taken = torch.cuda.max_memory_allocated() - before
    assert taken < needed_bytes(tiny_recipe(*WIDE), 600, 1, 2) < 2.5 * taken


def test_what_others_have_taken_makes_microbatches_smaller_and_too_large_ones_are_one_line(
    phrasebook_data, tmp_path: Path
):
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    taken = torch.empty(free - 2 * 10**9, dtype=torch.uint8, device="cuda")
    environment = {**os.environ, "DRAGOMAN_DEVICE": "cuda"}
    arguments = ("train", "phrasebook", "--data", phrasebook_data, "--run")
    run_dragoman(*arguments, tmp_path / "auto", *changes(*WIDE), env=environment)
    assert (read_manifest(RunFolder(tmp_path / "auto")).num_microbatches or 0) > 1
    whole = changes(*WIDE, "batch.num_microbatches=1")
    done = run_dragoman(*arguments, tmp_path / "whole", *whole, env=environment, check=False)
    assert done.returncode == 2, done.stderr
    assert "is out of GPU memory with microbatches of 16,000 target tokens (1 a step); " in done.stderr
    assert "--set batch.num_microbatches=2" in done.stderr and "Traceback" not in done.stderr
    del taken
