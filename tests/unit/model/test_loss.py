"""The chunked loss against torch's own cross entropy."""

import pytest
import torch
import torch.nn.functional as F

from dragoman.model import loss as loss_module
from dragoman.model.loss import linear_cross_entropy, token_nll


def inputs(scale: float = 1.0):
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(70, 16, dtype=torch.float64, generator=generator) * scale
    weight = torch.randn(50, 16, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, 50, (70,), generator=generator)
    return hidden.requires_grad_(), weight.requires_grad_(), labels


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk_elements", [10_000_000, 50 * 32, 1])
def test_value_and_gradients_equal_torch(monkeypatch, smoothing, chunk_elements):
    monkeypatch.setattr(loss_module, "LOSS_CHUNK_ELEMENTS", chunk_elements)
    hidden, weight, labels = inputs()
    sums = linear_cross_entropy(hidden, weight, labels, smoothing)
    (sums.loss * 0.3).backward()
    mine = [hidden.grad.clone(), weight.grad.clone()]
    hidden.grad = weight.grad = None
    expected = F.cross_entropy(hidden @ weight.T, labels, label_smoothing=smoothing, reduction="sum")
    (expected * 0.3).backward()
    assert torch.allclose(sums.loss, expected, rtol=1e-12)
    assert torch.allclose(mine[0], hidden.grad, atol=1e-12)
    assert torch.allclose(mine[1], weight.grad, atol=1e-12)
    plain = F.cross_entropy(hidden @ weight.T, labels, reduction="sum")
    assert torch.allclose(sums.nll, plain, rtol=1e-12)


def test_a_hopeless_label_does_not_overflow():
    """Probabilities of 1e-400 underflow to 0; the loss must stay finite and right."""
    hidden, weight, labels = inputs(scale=300.0)
    sums = linear_cross_entropy(hidden, weight, labels, 0.1)
    expected = F.cross_entropy(hidden @ weight.T, labels, label_smoothing=0.1, reduction="sum")
    assert torch.isfinite(sums.loss)
    assert torch.allclose(sums.loss, expected, rtol=1e-12)


def test_token_nll_is_per_token():
    hidden, weight, labels = inputs()
    expected = F.cross_entropy(hidden @ weight.T, labels, reduction="none")
    assert torch.allclose(token_nll(hidden, weight, labels), expected, rtol=1e-12)
