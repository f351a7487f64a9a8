"""Muon: directions of equal strength for matrices, Adam for the rest, nothing for a gradient that is not finite."""

import pytest
import torch

from dragoman.config import ModelConfig, OptimConfig
from dragoman.model.flat import FlatModel
from dragoman.model.transformer import Transformer, initialize
from dragoman.train.muon import MOMENTUM, orthogonalized
from dragoman.train.optim import Optimizer

CONFIG = ModelConfig(d_model=16, num_heads=2, d_ffn=48, num_encoder_layers=1, num_decoder_layers=1, max_positions=16)


def flat_model() -> FlatModel:
    model = Transformer(CONFIG, 40)
    initialize(model, 1)
    return FlatModel(model)


def update(flat: FlatModel, optimizer: Optimizer, seed: int, rate: float = 0.01) -> torch.Tensor:
    flat.gradient.copy_(torch.randn(flat.gradient.shape, generator=torch.Generator().manual_seed(seed)))
    return optimizer.update(rate)


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 16, 48), (2, 48, 16), (1, 5, 9)])
def test_singular_values_come_out_alike(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    before, after = torch.linalg.svdvals(x), torch.linalg.svdvals(orthogonalized(x))
    assert before.max() / before.min() > 2
    assert after.min() > 0.5 and after.max() < 1.3
    left, _, right = torch.linalg.svd(x, full_matrices=False)
    assert torch.nn.functional.cosine_similarity(orthogonalized(x).flatten(1), (left @ right).flatten(1)).min() > 0.95


def test_matrices_move_by_muon_and_the_rest_by_adam():
    flats = [flat_model(), flat_model()]
    config = OptimConfig(method="muon", weight_decay=0.1, max_norm=1.0)
    muon, adam = Optimizer(flats[0], config), Optimizer(flats[1], config.model_copy(update={"method": "adamw"}))
    before = flats[0].weights.clone()
    update(flats[0], muon, 1)
    update(flats[1], adam, 1)
    for name, old, by_muon, by_adam in zip(
        flats[0].names, *(flats[0].views(v) for v in (before, flats[0].weights, flats[1].weights)), strict=True
    ):
        if old.dim() == 2 and name != "embedding.weight":
            change = (by_muon - old * (1 - 0.01 * 0.1)) / 0.01
            parts = 3 if ".qkv." in name else 2 if ".kv." in name else 1
            for part in change.chunk(parts):
                values = torch.linalg.svdvals(part) / (0.2 * max(part.shape) ** 0.5)
                assert values.min() > 0.5 and values.max() < 1.3, name
        else:
            assert by_muon.equal(by_adam), name
    assert not flats[0].gradient.any()


def test_momentum_is_kept_in_the_files_of_adam():
    flat = flat_model()
    optimizer = Optimizer(flat, OptimConfig(method="muon"))
    update(flat, optimizer, 1)
    gradient = torch.randn(flat.gradient.shape, generator=torch.Generator().manual_seed(1))
    name = "encoder.0.feed_forward.sublayer.up.weight"
    own = flat.views(gradient)[flat.names.index(name)]
    assert torch.allclose(optimizer.tensors()[f"{name}.exp_avg"], (1 - MOMENTUM) * own)
    twin = flat_model()
    twin.weights.copy_(flat.weights)
    restored = Optimizer(twin, OptimConfig(method="muon"))
    restored.load(optimizer.tensors())
    for each, own_optimizer in ((flat, optimizer), (twin, restored)):
        update(each, own_optimizer, 2)
    assert flat.weights.equal(twin.weights)


def test_the_direction_is_of_the_momentum_as_if_the_next_step_were_known():
    flat = flat_model()
    optimizer = Optimizer(flat, OptimConfig(method="muon"))
    number = flat.names.index("encoder.0.feed_forward.sublayer.up.weight")
    update(flat, optimizer, 1)
    before = flat.views(flat.weights)[number].clone()
    update(flat, optimizer, 2)
    first, second = (
        flat.views(torch.randn(flat.gradient.shape, generator=torch.Generator().manual_seed(seed)))[number]
        for seed in (1, 2)
    )
    momentum = MOMENTUM * (1 - MOMENTUM) * first + (1 - MOMENTUM) * second
    ahead = MOMENTUM * momentum + (1 - MOMENTUM) * second
    change = 0.01 * 0.2 * max(before.shape) ** 0.5 * orthogonalized(ahead[None])[0]
    assert torch.allclose(before - flat.views(flat.weights)[number], change, atol=1e-6)


def test_a_gradient_that_is_not_finite_moves_nothing():
    flat = flat_model()
    optimizer = Optimizer(flat, OptimConfig(method="muon", weight_decay=0.1))
    update(flat, optimizer, 1)
    weights, averages = flat.weights.clone(), {name: t.clone() for name, t in optimizer.tensors().items()}
    flat.gradient[5] = torch.nan
    assert torch.isnan(optimizer.update(0.01))
    assert flat.weights.equal(weights)
    assert all(tensor.equal(averages[name]) for name, tensor in optimizer.tensors().items())
    assert not flat.gradient.any()
