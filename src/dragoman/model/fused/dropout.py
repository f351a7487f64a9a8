"""A place in the model where elements are dropped, as kernels want to be told of it."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Dropout:
    """`site` tells places apart; the seed, two 32-bit words on the device, tells passes apart."""

    rate: float
    site: int
    seed: torch.Tensor

    @property
    def threshold(self) -> int:
        """Of 24 bits, so that it is a plain integer to a kernel."""
        return round(self.rate * 2**24)

    @property
    def scale(self) -> float:
        return 1 / (1 - self.rate)


def drops(dropout: Dropout | None) -> bool:
    return dropout is not None and dropout.rate > 0


def arguments(dropout: Dropout | None) -> tuple[torch.Tensor | None, int, int, float]:
    """(seed, site, threshold, scale) for a kernel; it reads none of them where nothing is dropped."""
    if dropout is None or dropout.rate == 0:
        return None, 0, 0, 1.0
    return dropout.seed, dropout.site, dropout.threshold, dropout.scale
