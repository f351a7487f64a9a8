"""How ranks stay together: the one seam between the training loop and the methods of exchange.

Each rank brings the sum of its own microbatches, already divided by the target tokens of all ranks, so that the
exchanged sum is the mean over the whole step however unevenly the microbatches fell.
"""

from collections import deque
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Protocol

import torch

from dragoman.dist.landing import landing
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel

Totals = list[float]
STEPS_LATE = 2


class Sync(Protocol):
    """One method of exchange. The loop calls these in the order in which they stand here."""

    has_replicas: ClassVar[bool]
    """Whether ranks hold weights and optimizer averages of their own between exchanges."""

    @property
    def rate_factor(self) -> float:
        """What the optimizer's learning rate is to be multiplied by."""
        ...

    def begin_last_backward(self) -> None:
        """The step's last backward pass is about to run: what it finishes may travel at once."""
        ...

    def exchange(self, own_tokens: int, all_tokens: int) -> None:
        """Make the flat gradient the one of this update: of the whole step, or of this rank's part of it."""
        ...

    def advance(self, step: int, totals: torch.Tensor) -> list[Totals]:
        """After the update: sum `totals` (float64) over all ranks. Gives the sums that have arrived by now, oldest
        first; a method that keeps the link busy in the background gives them some steps late, on all ranks alike."""
        ...

    def settle(self) -> list[Totals]:
        """Wait for what is under way, so that the state can be saved; the sums that had not been given yet."""
        ...

    def finish(self) -> list[Totals]:
        """Make all ranks' weights equal, at the end of the run; the sums that had not been given yet."""
        ...

    def shared_weights(self) -> AbstractContextManager[None]:
        """Inside, the model has the weights that all ranks agree on: to judge and to save."""
        ...

    def state(self) -> dict[str, torch.Tensor]:
        """What a resumed run needs of this rank's own; empty where the method keeps nothing."""
        ...

    def is_common(self, name: str) -> bool:
        """Whether that part of the state is the same on every rank: one that lost its own has it from another."""
        ...

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        """Go on from such a state, the model having its saved shared weights; from nothing where it is empty, and with
        nothing of its own where it holds only what is common."""
        ...

    @property
    def sent_bytes(self) -> int:
        """Bytes this rank has sent so far, by the method's own count."""
        ...


class Arrivals:
    """Sums on their way from a device to the host. A GPU is told of steps ahead of doing them: nobody waits for its
    newest, and those of some steps ago are read, the same on every rank."""

    def __init__(self, device: torch.device) -> None:
        self._num_late = STEPS_LATE if device.type == "cuda" else 0
        self._under_way: deque[tuple[torch.Tensor, torch.cuda.Event | None]] = deque()

    def add(self, totals: torch.Tensor) -> list[Totals]:
        """Send this step's; what has arrived by now."""
        landed, event = landing(totals), torch.cuda.Event() if totals.is_cuda else None
        if event is not None:
            event.record()
        self._under_way.append((landed, event))
        return self._take(self._num_late)

    def rest(self) -> list[Totals]:
        """Everything that is still under way."""
        return self._take(0)

    def _take(self, num_left: int) -> list[Totals]:
        arrived: list[Totals] = []
        while len(self._under_way) > num_left:
            totals, event = self._under_way.popleft()
            if event is not None:
                event.synchronize()
            arrived.append(totals.tolist())
        return arrived


class GradientSync:
    """What the methods share that exchange gradients and so keep all ranks equal at every step."""

    has_replicas: ClassVar[bool] = False

    def __init__(self, world: World, flat: FlatModel) -> None:
        self._world = world
        self._flat = flat
        self._arrivals = Arrivals(world.device)

    @property
    def rate_factor(self) -> float:
        return 1.0

    def begin_last_backward(self) -> None:
        pass

    def advance(self, step: int, totals: torch.Tensor) -> list[Totals]:
        return self._arrivals.add(self._world.sum(totals))

    def settle(self) -> list[Totals]:
        return self._arrivals.rest()

    def finish(self) -> list[Totals]:
        return self._arrivals.rest()

    def shared_weights(self) -> AbstractContextManager[None]:
        return nullcontext()

    def state(self) -> dict[str, torch.Tensor]:
        return {}

    def is_common(self, name: str) -> bool:
        return False

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        pass

    @property
    def sent_bytes(self) -> int:
        return self._world.sent_bytes
