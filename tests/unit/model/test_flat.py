"""Weights and gradients as flat vectors: views that stay views."""

import torch

from dragoman.model.flat import FlatModel
from small_models import backward, small_model


def test_gradients_are_views_that_add_up_and_are_zeroed_at_once():
    model = small_model()
    flat = FlatModel(model)
    assert flat.gradient.numel() == sum(p.numel() for p in model.parameters())
    backward(model, 1)
    once = flat.gradient.clone()
    backward(model, 1)
    assert torch.allclose(flat.gradient, 2 * once)
    flat.zero()
    assert all((p.grad == 0).all() for p in model.parameters())
    flat.gradient.fill_(3)
    assert all((p.grad == 3).all() for p in model.parameters())


def test_weights_are_views_that_training_and_loading_change_in_place():
    model = small_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    flat = FlatModel(model)
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())
    flat.weights.fill_(2)
    assert all((p == 2).all() for p in model.parameters())
    model.load_state_dict(before)
    assert flat.weights[: 4 * 6].equal(before["0.weight"].flatten())


def test_a_parameter_is_named_when_its_gradient_is_there():
    model = small_model()
    flat = FlatModel(model)
    seen: list[int] = []
    flat.when_ready(seen.append)
    backward(model, 1)
    assert sorted(seen) == list(range(6))
    assert seen.index(4) < seen.index(0), "the last layer is done first"
