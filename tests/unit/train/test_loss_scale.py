"""The loss scale: gradients come out as they are, overflows are left out, the scale finds its place and keeps it."""

import shutil

import pytest
import torch

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel
from dragoman.model.weights import load_tensors
from dragoman.train import scale as scale_module
from dragoman.train.optim import Optimizer
from dragoman.train.scale import FIRST, LossScale
from small_models import backward, small_model
from small_runs import train_here

CPU = torch.device("cpu")


def test_an_update_is_the_same_with_and_without_a_scale():
    models = [small_model(), small_model()]
    scale = LossScale(CPU)
    flats = [FlatModel(model) for model in models]
    optimizers = [
        Optimizer(flats[0], OptimConfig(max_norm=1.0)),
        Optimizer(flats[1], OptimConfig(max_norm=1.0), scale=scale),
    ]
    for seed in range(3):
        norms = []
        for model, optimizer, factor in zip(models, optimizers, (1.0, float(scale.value)), strict=True):
            backward(model, seed, factor)
            norms.append(float(optimizer.update(0.01)))
        assert norms[1] == pytest.approx(norms[0], rel=1e-6)
    assert torch.allclose(flats[0].weights, flats[1].weights, rtol=1e-5, atol=1e-7)
    assert scale.value == FIRST


def test_an_overflow_moves_nothing_and_halves_the_scale():
    model, scale = small_model(), LossScale(CPU)
    flat = FlatModel(model)
    optimizer = Optimizer(flat, OptimConfig(), scale=scale)
    before = flat.weights.clone()
    flat.gradient[1] = torch.inf
    optimizer.update(0.01)
    assert flat.weights.equal(before)
    assert scale.value == FIRST / 2
    assert not flat.gradient.any()


def test_a_long_time_without_one_doubles_it(monkeypatch):
    monkeypatch.setattr(scale_module, "GROWTH_UPDATES", 3)
    scale = LossScale(CPU)
    seen = []
    for norm in (1.0, 1.0, torch.inf, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        scale.note(torch.tensor(norm))
        seen.append(float(scale.value) / FIRST)
    assert seen == [1, 1, 0.5, 0.5, 0.5, 1, 1, 1, 2]


def optimizer_with(scale: LossScale | None) -> Optimizer:
    return Optimizer(FlatModel(small_model()), OptimConfig(), scale=scale)


def test_a_restored_scale_grows_and_falls_as_if_nothing_had_happened(monkeypatch):
    monkeypatch.setattr(scale_module, "GROWTH_UPDATES", 3)
    scale, restored = LossScale(CPU), LossScale(CPU)
    for norm in (torch.inf, torch.inf, 1.0, 1.0):
        scale.note(torch.tensor(norm))
    optimizer_with(restored).load(optimizer_with(scale).tensors())
    seen = []
    for each in (scale, restored):
        each.note(torch.tensor(1.0))
        seen.append(float(each.value))
    assert seen == [FIRST / 2, FIRST / 2], "halved twice, and doubled by the third good update"


def test_only_a_scale_that_is_there_is_saved_and_only_one_that_was_saved_is_restored():
    scale, plain = LossScale(CPU), optimizer_with(None)
    scale.note(torch.tensor(torch.inf))
    names = optimizer_with(scale).tensors().keys() - plain.tensors().keys()
    assert names == {"loss_scale.value", "loss_scale.num_good"}
    plain.load(optimizer_with(scale).tensors())
    fresh = LossScale(CPU)
    optimizer_with(fresh).load(plain.tensors())
    assert fresh.value == FIRST


def test_a_run_in_fp16_goes_on_with_its_scale_and_the_same_bits(phrasebook_data, tmp_path, monkeypatch):
    monkeypatch.setattr(scale_module, "GROWTH_UPDATES", 3)
    settings = ("train.precision=fp16", "train.max_steps=8", "checkpoint.every_steps=4", "evaluate.decode=false")
    last, found = tmp_path / "run/checkpoints/step-00000008", []
    for _ in range(2):
        assert train_here(phrasebook_data, tmp_path / "run", *settings) == 0
        found.append(load_tensors(last / "optimizer.safetensors"))
        shutil.rmtree(last)
    whole, resumed = found
    assert whole["loss_scale.value"] != FIRST and whole["loss_scale.num_good"] > 0, "it has moved"
    assert whole.keys() == resumed.keys()
    assert all(tensor.equal(resumed[name]) for name, tensor in whole.items())
