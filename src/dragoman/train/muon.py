"""Muon (Jordan et al. 2024): matrices move along their momentum with all its directions made equally strong.

Scaled as by Liu et al. (2025), so that a matrix moves about as far as under Adam and the same learning rate serves
both. Word vectors, norms and biases are no matrices in this sense and stay with Adam. The one of torch.optim takes one
matrix after the other, fused projections as one, and cannot leave an update out on the device.
Shape letters: B matrices of one shape, R rows, C columns.
"""

import math
from typing import Any

import torch

from dragoman.model.flat import FlatModel

MOMENTUM = 0.95
NUM_ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic iteration that pulls singular values towards 1
ADAM_STEP = 0.2  # the usual size of an element's step under Adam, in learning rates


class Muon:
    """Where the matrices go; Adam passes over them. `directions`, times the learning rate, is what they lose."""

    def __init__(self, flat: FlatModel, momentum: torch.Tensor) -> None:
        # Products of 16 bits are enough to make directions alike, and there is a device that is fast at them.
        dtype = torch.bfloat16 if flat.weights.is_cuda else flat.weights.dtype
        self.directions = torch.zeros_like(flat.weights, dtype=dtype)
        vectors = (flat.weights, flat.gradient, momentum, self.directions)
        rows = zip(flat.names, *(flat.views(vector) for vector in vectors), strict=True)
        self._matrices = [(name, views) for name, *views in rows if is_matrix(name, views[0])]
        self._by_shape: dict[torch.Size, list[torch.Tensor]] = {}
        for name, (*_, direction) in self._matrices:
            for part in direction.chunk(_num_fused(name)):
                self._by_shape.setdefault(part.shape, []).append(part)

    def gather(self, factor: torch.Tensor, is_finite: torch.Tensor) -> None:
        """Into the momentum goes the gradient times `factor`, unless it is not finite, and both into the directions."""
        for _, (_, gradient, momentum, direction) in self._matrices:
            clipped = torch.where(is_finite, gradient * factor, 0.0)
            moved = torch.lerp(clipped, momentum, MOMENTUM)
            momentum.copy_(torch.where(is_finite, moved, momentum))
            # Nesterov: as if the momentum of the next step were known.
            direction.copy_(torch.lerp(clipped, moved, MOMENTUM))

    def orthogonalize(self) -> None:
        """Make the directions of every matrix equally strong."""
        for (num_rows, num_columns), directions in self._by_shape.items():
            size = ADAM_STEP * math.sqrt(max(num_rows, num_columns))
            alike_BRC = orthogonalized(torch.stack(directions), size)
            foreach_copy: Any = torch.ops.aten._foreach_copy_  # one kernel for all
            foreach_copy(directions, list(alike_BRC.unbind()))

    def move(self, rate: float, decay: float, is_finite: torch.Tensor) -> None:
        """Let the weights decay and follow the directions."""
        kept = torch.where(is_finite, 1 - rate * decay, 1.0)
        for _, (weights, _, _, direction) in self._matrices:
            weights.mul_(kept).sub_(torch.where(is_finite, rate * direction, 0.0))


def is_matrix(name: str, weights: torch.Tensor) -> bool:
    return weights.dim() == 2 and name != "embedding.weight"


def _num_fused(name: str) -> int:
    """Projections that share a tensor are matrices of their own."""
    return 3 if ".qkv.weight" in name else 2 if ".kv.weight" in name else 1


def orthogonalized(x_BRC: torch.Tensor, size: float = 1.0) -> torch.Tensor:
    """The nearest matrices whose singular values are all about `size` (between 0.7 and 1.2 of it)."""
    a, b, c = COEFFICIENTS
    is_tall = x_BRC.shape[1] > x_BRC.shape[2]
    y = x_BRC.transpose(1, 2) if is_tall else x_BRC
    length = torch.linalg.vector_norm(y, dim=(1, 2), keepdim=True, dtype=torch.float32)
    y = y * (1 / (length + 1e-12)).to(x_BRC.dtype)
    for iteration in range(NUM_ITERATIONS):
        factor = size if iteration == NUM_ITERATIONS - 1 else 1.0
        gram = y @ y.transpose(1, 2)
        polynomial = torch.baddbmm(gram, gram, gram, beta=factor * b, alpha=factor * c)
        polynomial.diagonal(dim1=1, dim2=2).add_(factor * a)
        y = polynomial @ y
    return y.transpose(1, 2) if is_tall else y
