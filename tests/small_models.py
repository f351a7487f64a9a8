"""A model small enough to check by hand what is done to its weights and gradients."""

import torch
from torch import nn


def small_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 3))


def backward(model: nn.Module, seed: int, scale: float = 1.0) -> None:
    inputs = torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))
    (model(inputs).square().sum() * scale).backward()
