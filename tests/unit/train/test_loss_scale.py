"""The loss scale: gradients come out as they are, overflows are left out, and the scale finds its place."""

import pytest
import torch

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel
from dragoman.train import scale as scale_module
from dragoman.train.optim import Optimizer
from dragoman.train.scale import FIRST, LossScale
from small_models import backward, small_model

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
