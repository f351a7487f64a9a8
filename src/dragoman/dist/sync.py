"""How gradients travel between ranks. The loop calls `exchange` once a step and knows nothing else.

Each rank brings the sum of its own microbatches, already divided by the target tokens of all ranks, so that the
exchanged sum is the mean over the whole step however unevenly the microbatches fell.
"""

from typing import Protocol

import torch

from dragoman.config import SyncConfig
from dragoman.dist.world import World


class Sync(Protocol):
    """One way to exchange gradients."""

    def exchange(self, gradient: torch.Tensor) -> None:
        """Replace this rank's flat gradient by that of the whole step, in place."""
        ...

    def sent_bytes(self, gradient: torch.Tensor) -> int:
        """Bytes this rank sends for one such exchange."""
        ...

    def state(self) -> dict[str, torch.Tensor]:
        """What a resumed run needs of this rank's own; empty where the method keeps nothing."""
        ...


class DenseSync:
    """The exact sum."""

    def __init__(self, world: World) -> None:
        self._world = world

    def exchange(self, gradient: torch.Tensor) -> None:
        self._world.sum(gradient)

    def sent_bytes(self, gradient: torch.Tensor) -> int:
        size = self._world.size
        return round(2 * (size - 1) / size * gradient.numel() * gradient.element_size())

    def state(self) -> dict[str, torch.Tensor]:
        return {}


def make_sync(config: SyncConfig, world: World) -> Sync:
    """The exchange a recipe names."""
    assert config.method == "dense"
    return DenseSync(world)
