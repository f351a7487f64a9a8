"""PowerSGD (Vogels et al. 2019): every gradient matrix as a product of two thin ones, with error feedback.

A matrix of a x b costs rank x (a + b) numbers instead of a x b. The right factors are kept from step to step (warm
start), so that one power iteration a step follows the gradient's main directions.
"""

import torch

from dragoman.dist.sync import GradientSync
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel


class PowerSgdSync(GradientSync):
    """Matrices in two rounds of thin sums; vectors travel whole with the first."""

    def __init__(self, world: World, flat: FlatModel, rank: int, dense_steps: int) -> None:
        super().__init__(world, flat)
        self._dense_steps = dense_steps
        self._num_steps = 0
        self._error = torch.zeros_like(flat.gradient)
        pairs = [
            (gradient.view(len(gradient), -1), error.view(len(error), -1))
            for gradient, error in zip(flat.views(flat.gradient), flat.views(self._error), strict=True)
        ]
        # A thin factor must save something: other parameters travel whole.
        self._matrices = [pair for pair in pairs if min(pair[0].shape) > 2 * rank]
        self._vectors = [gradient for gradient, _ in pairs if min(gradient.shape) <= 2 * rank]
        self._rank = rank
        self._right = self._first_factors()

    def _first_factors(self) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(1)
        return [
            torch.randn(g.shape[1], self._rank, generator=generator, dtype=g.dtype).to(g.device)
            for g, _ in self._matrices
        ]

    def exchange(self, own_tokens: int, all_tokens: int) -> None:
        if self._world.is_alone:
            return
        self._num_steps += 1
        if self._num_steps <= self._dense_steps:
            self._world.sum(self._flat.gradient)
            return
        for gradient, error in self._matrices:
            error += gradient
        left = [error @ right for (_, error), right in zip(self._matrices, self._right, strict=True)]
        self._sum([*left, *self._vectors])
        left = _orthonormal(left)
        own = [error.T @ factor for (_, error), factor in zip(self._matrices, left, strict=True)]
        for (_, error), factor, right in zip(self._matrices, left, own, strict=True):
            error -= factor @ right.T
        self._sum(own)
        for (gradient, _), factor, right in zip(self._matrices, left, own, strict=True):
            torch.mm(factor, right.T, out=gradient)
        # A broken gradient spoils this step, which all ranks then skip, and no later one.
        self._error.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
        self._right = [torch.where(new.isfinite(), new, old) for new, old in zip(own, self._right, strict=True)]

    def _sum(self, tensors: list[torch.Tensor]) -> None:
        """One exchange for all of them, in place; none where there is nothing to sum."""
        if not tensors:
            return
        together = self._world.sum(torch.cat([tensor.flatten() for tensor in tensors]))
        for tensor, part in zip(tensors, together.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def state(self) -> dict[str, torch.Tensor]:
        factors = {f"right.{number}": right for number, right in enumerate(self._right)}
        return {"error": self._error, "num_steps": torch.tensor(self._num_steps), **factors}

    def is_common(self, name: str) -> bool:
        return name != "error"

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self._error.zero_()
        if not tensors:
            self._num_steps, self._right = 0, self._first_factors()
            return
        if "error" in tensors:
            self._error.copy_(tensors["error"])
        self._num_steps = int(tensors["num_steps"])
        self._right = [tensors[f"right.{n}"].to(right.device) for n, right in enumerate(self._right)]


def _orthonormal(factors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same spans with orthonormal columns; those of one shape at once, since each call costs a GPU much."""
    result = list(factors)
    for shape in {factor.shape for factor in factors}:
        places = [place for place, factor in enumerate(factors) if factor.shape == shape]
        columns = torch.linalg.qr(torch.stack([factors[place] for place in places]))[0]
        for place, factor in zip(places, columns, strict=True):
            result[place] = factor
    return result
