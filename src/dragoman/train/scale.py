"""The loss scale of fp16: gradients are carried larger than they are, or many would be too small for it to tell from 0.

It lives on the device and is changed there, by what happened to the gradient; nobody waits for it. The one of torch.amp
serves the optimizers of torch.optim alone.
"""

from typing import Any

import torch

FIRST = 2.0**16
GROWTH_UPDATES = 2_000  # without an overflow, after which twice as much is tried
VALUE, NUM_GOOD = "loss_scale.value", "loss_scale.num_good"  # names in a file


class LossScale:
    """Halved when a gradient overflowed, doubled when none has for long."""

    def __init__(self, device: torch.device) -> None:
        self.value = torch.tensor(FIRST, device=device)
        self._num_good = torch.zeros((), dtype=torch.int64, device=device)

    def reset(self) -> None:
        self.value.fill_(FIRST)
        self._num_good.zero_()

    def note(self, norm: torch.Tensor) -> None:
        """How the gradient of this update came out: its norm is not finite where anything overflowed."""
        is_good = torch.isfinite(norm)
        self._num_good.copy_(torch.where(is_good, self._num_good + 1, 0))
        grows = self._num_good == GROWTH_UPDATES
        self.value.mul_(torch.where(is_good, torch.where(grows, 2.0, 1.0), 0.5))
        self._num_good.mul_(~grows)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Ready for a file."""
        return {VALUE: self.value, NUM_GOOD: self._num_good}

    def load(self, tensors: dict[str, Any]) -> None:
        """The reverse. A file may have none: one of a run in another precision, or of an earlier version."""
        if VALUE in tensors:
            self.value.copy_(tensors[VALUE])
            self._num_good.copy_(tensors[NUM_GOOD])
