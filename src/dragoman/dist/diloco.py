"""Replicas that train by themselves and are averaged piece by piece, while training goes on.

After DiLoCo (Douillard et al. 2023) in its streaming form (2025). The weights are cut into `every_steps` fragments.
After each step one fragment sets out: every replica sends how far its weights have moved from the shared ones, in few
bits. It lands `delay_steps` later: the mean of what was sent moves the shared weights (an outer step, with momentum if
asked), and each replica exchanges what it sent for that mean. What rounding lost, and what was learned during the
flight, stays in the replica and travels next time: error feedback without a buffer of its own.
"""

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from dragoman.config import SyncConfig
from dragoman.dist.codec import decode, encode
from dragoman.dist.sync import Totals
from dragoman.dist.world import Pending, World
from dragoman.model.flat import FlatModel
from dragoman.plan.payload import Precision


@dataclass
class Flight:
    """One fragment on its way."""

    step: int  # it set out after this one
    sent: torch.Tensor  # what this replica sent, as the others read it
    pending: Pending[list[torch.Tensor]] | None  # None once the mean is known
    totals_bytes: int = 0  # at the end of each message
    mean: torch.Tensor | None = None


class DilocoSync:
    """Replicas are hosts, their ranks summing gradients at every step, or single ranks."""

    has_replicas: ClassVar[bool] = True

    def __init__(self, world: World, flat: FlatModel, config: SyncConfig, precision: Precision) -> None:
        self._world = world
        self._flat = flat
        self._config = config
        self._precision: Precision = precision
        alone = World(0, 1, world.local_rank, world.device)
        by_host = config.replica == "host"
        self._inside = world.within_host() if by_host else alone
        self._between = world.between_hosts() if by_host else world
        self._num_replicas = 1 + max(world.gather(world.host_number)) if by_host else world.size
        self._flights: deque[Flight] = deque()
        self._shared = flat.weights.clone()
        self._momentum = torch.zeros_like(flat.weights) if config.outer_momentum else None

    @property
    def rate_factor(self) -> float:
        """A replica sees a share of the text: its gradients are noisier by this root, and Adam divides by their size.
        Without the factor the mean of the replicas would move too little."""
        return self._config.inner_rate or self._num_replicas**0.5

    def begin_last_backward(self) -> None:
        pass

    def exchange(self, own_tokens: int, all_tokens: int) -> None:
        """Sum within the replica, and let the gradient be the mean over the replica's tokens."""
        self._inside.sum(self._flat.gradient)
        tokens = self._inside.sum(torch.tensor([own_tokens], dtype=torch.float64, device=self._world.device))
        self._flat.gradient *= (all_tokens / tokens.clamp_min(1)).to(self._flat.gradient.dtype)

    def advance(self, step: int, totals: torch.Tensor) -> list[Totals]:
        arrived: list[Totals] = []
        if self._flights and self._flights[0].step + self._config.delay_steps <= step:
            arrived = self._land()
        self._set_out(step, totals)
        return arrived

    def _set_out(self, step: int, totals: torch.Tensor) -> None:
        payload, sent = self._pack(self._fragment(step))
        message = torch.cat([payload, self._inside.sum(totals).view(torch.uint8)])
        # Only the first rank of a host talks to the others; they hear from it when the fragment lands.
        is_leader = self._inside.is_first
        pending = self._between.start_gather(message) if is_leader else Pending((), lambda: [message])
        self._flights.append(Flight(step, sent, pending, message.numel() - payload.numel()))

    def _land(self) -> list[Totals]:
        flight = self._flights.popleft()
        arrived = self._receive(flight)
        self._apply(self._fragment(flight.step), flight)
        return arrived

    def _receive(self, flight: Flight) -> list[Totals]:
        """Wait for the others' messages; the sums they carried, unless they were given before."""
        if flight.pending is None:
            return []
        messages = torch.stack([*flight.pending.wait()])
        if not self._inside.is_alone:
            rows = torch.zeros(self._num_replicas, messages.shape[1], dtype=torch.uint8, device=messages.device)
            rows[: len(messages)] = messages
            messages = self._inside.broadcast(rows)
        flight.pending = None
        end = messages.shape[1] - flight.totals_bytes
        flight.mean = self._mean(messages[:, :end], flight.sent)
        return [messages[:, end:].clone(memory_format=torch.contiguous_format).view(torch.float64).sum(0).tolist()]

    def _pack(self, part: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """How far a fragment has moved from the shared weights: as bytes, and as the others will read them."""
        self._mend(part)
        payload = encode(self._flat.weights[part] - self._shared[part], self._precision)
        return payload, decode(payload, part.stop - part.start, self._precision).to(self._flat.weights.dtype)

    def _mend(self, part: slice) -> None:
        """Weights that are no numbers take the shared ones: one replica's trouble never reaches the others."""
        own = self._flat.weights[part]
        own.copy_(torch.where(own.isfinite(), own, self._shared[part]))

    def _mean(self, payloads: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        decoded = [decode(payload, like.numel(), self._precision) for payload in payloads]
        return (torch.stack(decoded).sum(0) / len(decoded)).to(like.dtype)

    def _apply(self, part: slice, flight: Flight) -> None:
        assert flight.mean is not None
        change = self._outer_step(part, flight.mean)
        self._shared[part] += change
        self._flat.weights[part] += change - flight.sent

    def _outer_step(self, part: slice, mean: torch.Tensor) -> torch.Tensor:
        """Nesterov's momentum on the mean movement, as in SGD(nesterov=True)."""
        rate, momentum = self._config.outer_rate, self._config.outer_momentum
        if self._momentum is None:
            return rate * mean
        velocity = self._momentum[part]
        velocity.mul_(momentum).add_(mean)
        return rate * (mean + momentum * velocity)

    def _fragment(self, step: int) -> slice:
        """The part of the weights whose turn it is: all of them once in `every_steps`."""
        size, num = self._flat.weights.numel(), self._config.every_steps
        turn = (step - 1) % num
        return slice(size * turn // num, size * (turn + 1) // num)

    def settle(self) -> list[Totals]:
        return [totals for flight in self._flights for totals in self._receive(flight)]

    def finish(self) -> list[Totals]:
        arrived: list[Totals] = []
        while self._flights:
            arrived += self._land()
        self._mend(slice(None))
        if self._inside.is_first:
            self._between.sum(self._flat.weights)
            self._flat.weights /= self._num_replicas
        self._inside.broadcast(self._flat.weights)
        self._shared.copy_(self._flat.weights)
        return arrived

    @contextmanager
    def shared_weights(self) -> Generator[None]:
        own = self._flat.weights.clone()
        self._flat.weights.copy_(self._shared)
        try:
            yield
        finally:
            self._flat.weights.copy_(own)

    def state(self) -> dict[str, torch.Tensor]:
        """Own weights, momentum, and the fragments that have been received but have not landed."""
        tensors = {"weights": self._flat.weights.clone()}
        if self._momentum is not None:
            tensors["momentum"] = self._momentum
        for flight in self._flights:
            assert flight.mean is not None, "settle before saving"
            tensors[f"flight.{flight.step}.sent"] = flight.sent
            tensors[f"flight.{flight.step}.mean"] = flight.mean
        return tensors

    def is_common(self, name: str) -> bool:
        return name == "momentum" or name.endswith(".mean")

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        weights = self._flat.weights
        self._shared.copy_(weights)
        self._flights.clear()
        if self._momentum is not None:
            self._momentum.zero_()
        if "weights" in tensors:
            weights.copy_(tensors["weights"])
        if self._momentum is not None and "momentum" in tensors:
            self._momentum.copy_(tensors["momentum"])
        for step in sorted(int(name.split(".")[1]) for name in tensors if name.endswith(".mean")):
            mean = tensors[f"flight.{step}.mean"].to(weights.device)
            # A replica that begins at the shared weights has sent nothing.
            sent = tensors.get(f"flight.{step}.sent", torch.zeros_like(mean)).to(weights.device)
            self._flights.append(Flight(step, sent, None, mean=mean))

    @property
    def sent_bytes(self) -> int:
        extra = 0 if self._between is self._world else self._between.sent_bytes
        return self._world.sent_bytes + extra
