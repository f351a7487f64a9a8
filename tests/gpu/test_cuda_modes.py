"""Other ways to train on a GPU: the same bits every time, activations computed again, fp16 with a loss scale, Muon."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.model.weights import load_tensors
from dragoman.run.checkpoint_files import OPTIMIZER, WEIGHTS
from dragoman.run.folder import RunFolder
from dragoman.run.reader import read_manifest
from small_runs import train_here

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
SHORT = ("train.max_steps=30", "model.d_model=64", "model.num_heads=2", "evaluate.decode=false")


@pytest.fixture
def losses(phrasebook_data, tmp_path: Path, monkeypatch):
    """Train on a device and give back the loss of every step."""

    def train(name: str, *settings: str, device: str = "cuda") -> np.ndarray:
        monkeypatch.setenv("DRAGOMAN_DEVICE", device)
        assert train_here(phrasebook_data, tmp_path / name, *SHORT, *settings) == 0
        torch.use_deterministic_algorithms(False)  # a worker asks for it and ends; this process goes on
        lines = (tmp_path / name / "steps.jsonl").read_text().splitlines()
        return np.array([json.loads(line)["loss"] for line in lines])

    return train


def last_tensors(run: Path, name: str) -> dict[str, torch.Tensor]:
    return load_tensors(RunFolder(run).step_checkpoint(30) / name)


@pytest.mark.parametrize("method", ["adamw", "muon"])
def test_a_deterministic_run_gives_the_same_bits_again(losses, tmp_path: Path, method):
    settings = ("train.deterministic=true", f"optim.method={method}")
    assert losses("first", *settings).tolist() == losses("again", *settings).tolist()
    first, again = (last_tensors(tmp_path / name, WEIGHTS) for name in ("first", "again"))
    assert all(first[name].equal(again[name]) for name in first)


def test_recomputed_activations_are_the_same(losses, tmp_path: Path):
    kept, recomputed = (
        losses(name, "train.deterministic=true", f"train.recompute={name}") for name in ("false", "true")
    )
    assert recomputed.tolist() == kept.tolist()
    assert read_manifest(RunFolder(tmp_path / "true")).recomputes


def test_fp16_learns_with_a_loss_scale_that_is_saved(losses, tmp_path: Path):
    no_dropout = ("model.dropout=0.0", "model.ffn_dropout=0.0")
    on_gpu = losses("fp16", "train.precision=fp16", *no_dropout)
    on_cpu = losses("fp32", "train.precision=fp32", *no_dropout, device="cpu")
    manifest = read_manifest(RunFolder(tmp_path / "fp16"))
    assert manifest.precision == "fp16" and manifest.kernels.startswith("torch")
    assert 1 <= last_tensors(tmp_path / "fp16", OPTIMIZER)["loss_scale.value"] <= 2**17
    # An update may be left out while the scale is still too large.
    assert on_gpu[-1] < 0.9 * on_gpu[0] and abs(on_gpu[-1] / on_cpu[-1] - 1) < 0.05


def test_muon_learns_as_in_fp32_on_the_cpu(losses):
    settings = ("optim.method=muon", "model.dropout=0.0", "model.ffn_dropout=0.0")
    on_gpu, on_cpu = losses("gpu", *settings), losses("cpu", *settings, "train.precision=fp32", device="cpu")
    assert np.abs(on_gpu / on_cpu - 1).max() < 0.05
