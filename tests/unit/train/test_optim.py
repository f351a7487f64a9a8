"""The optimizer against torch's own, and its way through a file."""

import copy

import pytest
import torch
from torch import nn

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel
from dragoman.train.optim import Optimizer
from small_models import backward, small_model


def torchs(model: nn.Module, config: OptimConfig) -> torch.optim.Optimizer:
    kind = torch.optim.AdamW if config.method == "adamw" else torch.optim.Adam
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return kind(groups, lr=0.01, betas=tuple(config.betas), eps=config.epsilon, fused=True)


@pytest.mark.parametrize("method", ["adamw", "adam"])
@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e6])
def test_updates_are_those_of_torch(method, max_norm):
    config = OptimConfig(method=method, weight_decay=0.1, betas=[0.8, 0.9], epsilon=1e-7, max_norm=max_norm)
    ours, theirs = small_model(), small_model()
    flat, other = Optimizer(FlatModel(ours), config), torchs(theirs, config)
    for seed in range(4):
        backward(ours, seed, 10.0)
        norm = flat.update(0.01)
        theirs.zero_grad()
        backward(theirs, seed, 10.0)
        expected = nn.utils.clip_grad_norm_(theirs.parameters(), max_norm or 1e30)
        other.step()
        assert norm == pytest.approx(expected.item())
        assert all(not p.grad.any() for p in ours.parameters()), "zeroed for the next step"
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=1e-6, atol=1e-7), "clipping alone may round otherwise"


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_gradient_that_is_not_finite_moves_nothing_and_counts_for_nothing(bad):
    model, twin = small_model(), small_model()
    flats = [FlatModel(model), FlatModel(twin)]
    optimizers = [Optimizer(flat, OptimConfig()) for flat in flats]
    for flat, optimizer in zip(flats, optimizers, strict=True):
        backward(model if flat is flats[0] else twin, 1)
        optimizer.update(0.01)
    before = flats[0].weights.clone()
    flats[0].gradient[2] = bad
    assert not torch.isfinite(optimizers[0].update(0.01))
    assert flats[0].weights.equal(before)
    for each, optimizer in zip((model, twin), optimizers, strict=True):
        backward(each, 2)
        optimizer.update(0.01)
    assert flats[0].weights.equal(flats[1].weights)


@pytest.mark.parametrize("method", ["adamw", "adam"])
def test_an_optimizer_restored_from_its_tensors_goes_on_with_the_same_bits(method):
    config = OptimConfig(method=method, weight_decay=0.1)
    model = small_model()
    optimizer = Optimizer(FlatModel(model), config)
    for seed in (1, 2):
        backward(model, seed)
        optimizer.update(0.01)
    tensors = {name: tensor.clone() for name, tensor in optimizer.tensors().items()}
    assert set(tensors) == {
        f"{name}.{key}" for name, _ in model.named_parameters() for key in ("step", "exp_avg", "exp_avg_sq")
    }
    assert tensors["0.weight.step"] == 2
    twin = copy.deepcopy(model)
    restored = Optimizer(FlatModel(twin), config)
    restored.load(tensors)
    for each, own in ((model, optimizer), (twin, restored)):
        backward(each, 3)
        own.update(0.01)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert a.equal(b)
