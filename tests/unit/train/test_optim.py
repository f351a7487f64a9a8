"""The optimizer and its way through a file."""

import copy

import pytest
import torch
from torch import nn

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel
from dragoman.train.optim import (
    load_optimizer_tensors,
    make_optimizer,
    optimizer_tensors,
    set_learning_rate,
)
from small_models import backward, small_model


@pytest.mark.parametrize(("method", "kind"), [("adamw", torch.optim.AdamW), ("adam", torch.optim.Adam)])
def test_only_matrices_decay(method, kind):
    config = OptimConfig(method=method, weight_decay=0.1, betas=[0.8, 0.9], epsilon=1e-7)
    optimizer = make_optimizer(FlatModel(small_model()), config)
    assert type(optimizer) is kind
    decays = [(group["weight_decay"], {p.dim() for p in group["params"]}) for group in optimizer.param_groups]
    assert decays == [(0.1, {2}), (0.0, {1})]
    assert all((group["betas"], group["eps"]) == ((0.8, 0.9), 1e-7) for group in optimizer.param_groups)


def test_every_group_gets_the_rate():
    optimizer = make_optimizer(FlatModel(small_model()), OptimConfig())
    set_learning_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]


def step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    model.zero_grad(set_to_none=False)
    backward(model, seed)
    set_learning_rate(optimizer, 0.01)
    optimizer.step()


@pytest.mark.parametrize("method", ["adamw", "adam"])
def test_an_optimizer_restored_from_its_tensors_goes_on_with_the_same_bits(method):
    config = OptimConfig(method=method, weight_decay=0.1)
    model = small_model()
    optimizer = make_optimizer(FlatModel(model), config)
    step(model, optimizer, 1)
    step(model, optimizer, 2)
    twin = copy.deepcopy(model)
    restored = make_optimizer(FlatModel(twin), config)
    tensors = {name: tensor.clone() for name, tensor in optimizer_tensors(model, optimizer).items()}
    assert set(tensors) == {
        f"{name}.{key}" for name, _ in model.named_parameters() for key in ("step", "exp_avg", "exp_avg_sq")
    }
    load_optimizer_tensors(twin, restored, tensors)
    step(model, optimizer, 3)
    step(twin, restored, 3)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert a.equal(b)
