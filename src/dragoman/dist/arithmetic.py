"""What a method of exchange costs by its own arithmetic: the real method among peers that answer at once."""

from typing import Any

import torch

from dragoman.config import SyncConfig
from dragoman.dist.clock import now
from dragoman.dist.methods import make_sync
from dragoman.dist.world import Pending, World
from dragoman.model.flat import FlatModel

NUM_TIMED = 3
LONG_SECONDS = 0.7  # then once is enough
NUM_TOTALS = 5


class EchoWorld(World):
    """Peers that say what this rank says, without a link: what is left of an exchange is its arithmetic."""

    def __init__(self, like: World, size: int, num_hosts: int) -> None:
        super().__init__(min(like.rank, size - 1), size, like.local_rank, like.device, host_number=num_hosts - 1)
        self._num_hosts = num_hosts

    def start_sum(self, tensor: torch.Tensor) -> Pending[torch.Tensor]:
        return Pending((), lambda: tensor)

    def start_gather(self, payload: torch.Tensor) -> Pending[list[torch.Tensor]]:
        return Pending((), lambda: [payload] * self.size)

    def swap(self, chunks: torch.Tensor) -> torch.Tensor:
        return chunks

    def broadcast(self, tensor: torch.Tensor, source: int = 0) -> torch.Tensor:
        return tensor

    def gather(self, value: Any) -> list[Any]:
        return [value] * self.size

    def within_host(self) -> World:
        return World(0, 1, self.local_rank, self.device)

    def between_hosts(self) -> World:
        return EchoWorld(self, self._num_hosts, self._num_hosts)


def arithmetic_seconds(config: SyncConfig, world: World, num_hosts: int, flat: FlatModel) -> float:
    """Of one step on this rank. `flat` is changed by it, and should hold a gradient: give a copy."""
    echo = EchoWorld(world, max(world.size, 2), max(num_hosts, 2))
    # The first steps of powersgd travel whole: they have no arithmetic.
    sync = make_sync(config.model_copy(update={"dense_steps": 0}), echo, flat)
    totals = torch.zeros(NUM_TOTALS, dtype=torch.float64, device=world.device)
    taken: list[float] = []
    # The first step allocates, and lands nothing yet where a method has a delay.
    for step in range(1, 2 + config.delay_steps + NUM_TIMED):
        world.any(False)  # all ranks at once, as in a step
        start = now(world.device)
        sync.exchange(1, echo.size)
        sync.advance(step, totals)
        taken.append(now(world.device) - start)
        if world.any(step > config.delay_steps and sum(taken) > LONG_SECONDS):
            break
    timed = sorted(taken[config.delay_steps :])
    return timed[(len(timed) - 1) // 2]
