"""Muon (Jordan et al. 2024): matrices move along their momentum with all its directions made equally strong.

Scaled as by Liu et al. (2025), so that a matrix moves about as far as under Adam and the same learning rate serves
both. Word vectors, norms and biases are no matrices in this sense and stay with Adam. The one of torch.optim takes one
matrix after the other, fused projections as one, and cannot leave an update out on the device.
Shape letters: B matrices of one shape, R rows, C columns.
"""

import math
from dataclasses import dataclass

import torch

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel

MOMENTUM = 0.95
NUM_ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic iteration that pulls singular values towards 1
ADAM_STEP = 0.2  # the usual size of an element's step under Adam, in learning rates


@dataclass(frozen=True)
class _Group:
    """Matrices of one shape, as views of the flat vectors."""

    weights: list[torch.Tensor]
    gradients: list[torch.Tensor]
    momenta: list[torch.Tensor]


class Muon:
    """The matrices' part of an update; Adam passes over them."""

    def __init__(self, flat: FlatModel, momentum: torch.Tensor, config: OptimConfig) -> None:
        self._config = config
        vectors = (flat.weights, flat.gradient, momentum)
        rows = zip(flat.names, *(flat.views(vector) for vector in vectors), strict=True)
        groups: dict[torch.Size, _Group] = {}
        for name, weights, gradient, own_momentum in rows:
            for part in zip(*(view.chunk(_num_fused(name)) for view in (weights, gradient, own_momentum)), strict=True):
                if is_matrix(name, weights):
                    group = groups.setdefault(part[0].shape, _Group([], [], []))
                    for views, view in zip((group.weights, group.gradients, group.momenta), part, strict=True):
                        views.append(view)
        self._groups = list(groups.values())

    def update(self, rate: float, factor: torch.Tensor, is_finite: torch.Tensor) -> None:
        """Move the matrices by their gradient times `factor`, unless it is not finite."""
        for group in self._groups:
            gradients_BRC = torch.where(is_finite, torch.stack(group.gradients) * factor, 0.0)
            momenta_BRC = torch.stack(group.momenta)
            moved_BRC = torch.where(is_finite, MOMENTUM * momenta_BRC + (1 - MOMENTUM) * gradients_BRC, momenta_BRC)
            # Nesterov: as if the momentum of the next step were known.
            direction_BRC = orthogonalized(torch.lerp(gradients_BRC, moved_BRC, MOMENTUM))
            num_rows, num_columns = direction_BRC.shape[1:]
            step = rate * ADAM_STEP * math.sqrt(max(num_rows, num_columns))
            change_BRC = torch.where(is_finite, direction_BRC * -step, 0.0)
            kept = torch.where(is_finite, 1 - rate * self._config.weight_decay, 1.0)
            for number, (weights, momentum) in enumerate(zip(group.weights, group.momenta, strict=True)):
                weights.mul_(kept).add_(change_BRC[number])
                momentum.copy_(moved_BRC[number])


def is_matrix(name: str, weights: torch.Tensor) -> bool:
    return weights.dim() == 2 and name != "embedding.weight"


def _num_fused(name: str) -> int:
    """Projections that share a tensor are matrices of their own."""
    return 3 if ".qkv.weight" in name else 2 if ".kv.weight" in name else 1


def orthogonalized(x_BRC: torch.Tensor) -> torch.Tensor:
    """The nearest matrices whose singular values are all about 1 (between 0.7 and 1.2)."""
    a, b, c = COEFFICIENTS
    is_tall = x_BRC.shape[1] > x_BRC.shape[2]
    y = x_BRC.to(torch.bfloat16) if x_BRC.is_cuda else x_BRC
    y = y.transpose(1, 2) if is_tall else y
    y = y / (torch.linalg.matrix_norm(y.float(), keepdim=True) + 1e-12).to(y.dtype)
    for _ in range(NUM_ITERATIONS):
        gram = y @ y.transpose(1, 2)
        y = a * y + (b * gram + c * gram @ gram) @ y
    return (y.transpose(1, 2) if is_tall else y).to(x_BRC.dtype)
