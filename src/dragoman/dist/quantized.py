"""Gradients in 8 bits, a quarter of the bytes; what rounding lost is added to the next step's gradient."""

import torch

from dragoman.dist.codec import decode, encode
from dragoman.dist.sync import GradientSync
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel

PRECISION = "int8"


class Int8Sync(GradientSync):
    """Every rank sums one chunk of everybody's gradient and passes the sum on: the bytes of a ring, in 8 bits."""

    def __init__(self, world: World, flat: FlatModel) -> None:
        super().__init__(world, flat)
        self._error = torch.zeros_like(flat.gradient)
        self._chunk = -(-flat.gradient.numel() // world.size)

    def exchange(self, own_tokens: int, all_tokens: int) -> None:
        gradient, error, world = self._flat.gradient, self._error, self._world
        if world.is_alone:
            return
        error += gradient
        chunks = torch.nn.functional.pad(error, (0, self._chunk * world.size - error.numel())).view(world.size, -1)
        sent = torch.stack([encode(chunk, PRECISION) for chunk in chunks])
        received = world.swap(sent)
        total = self._decoded(received).sum(0)
        message = encode(total, PRECISION)
        gradient.copy_(self._decoded(world.start_gather(message).wait()).flatten()[: gradient.numel()])
        error -= self._decoded(sent).flatten()[: error.numel()]
        # The sum of this rank's chunk was rounded once more, here; nobody else knows by how much.
        mine = slice(world.rank * self._chunk, (world.rank + 1) * self._chunk)
        own_error = error[mine]
        own_error += (total - decode(message, self._chunk, PRECISION))[: own_error.numel()]
        # A broken gradient spoils this step, which all ranks then skip, and no later one.
        error.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

    def _decoded(self, messages: torch.Tensor | list[torch.Tensor]) -> torch.Tensor:
        return torch.stack([decode(message, self._chunk, PRECISION) for message in messages])

    def state(self) -> dict[str, torch.Tensor]:
        return {"error": self._error}

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self._error.zero_()
        if tensors:
            self._error.copy_(tensors["error"])
