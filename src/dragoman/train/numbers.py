"""Numbers that go wrong: steps that are left out, how many of them in a row are too many, losses that spike.

A step whose loss or gradient is no number moves no weight. Where all ranks have one gradient, all leave the step out;
a replica leaves out its own. Everybody hears of it with the losses, so that all ranks count alike. No files, no waits.
"""

import math
import statistics
from collections import deque
from collections.abc import Sequence

import torch

from dragoman.dist.sync import Totals

# Columns of the totals: ranks that left the step out, ranks that it began on, and the sum of these ranks' numbers.
LEFT_OUT, BEGAN, RANKS = 6, 7, 8
NUM_TOTALS = 9
MANY = 5  # in a row
MANY_SCALED = 25  # a loss scale is found by trying: the first steps of fp16 overflow, and halve it each time

WINDOW = 50  # losses that say what is usual; fewer say nothing
NUM_SPREADS = 8.0  # above the usual loss; healthy runs stay below 4
LEAST_SHARE = 0.1  # and so much of the usual loss: where there is next to no noise, a little more is no spike


def marks(norm: torch.Tensor, own: torch.Tensor, rank: int) -> torch.Tensor:
    """This rank's part of the three columns, where its numbers lie. `own` is one that it had before any exchange."""
    begins = ~torch.isfinite(own)
    return torch.stack([~torch.isfinite(norm), begins, begins * rank]).double()


def origin_of(totals: Totals) -> int | None:
    """The rank whose numbers went wrong; None where several did, or it cannot be told."""
    return int(totals[RANKS]) if totals[BEGAN] == 1 else None


class Streak:
    """Steps in a row that some rank left out, from the sums as they arrive: the same on every rank."""

    def __init__(self, step: int, limit: int) -> None:
        self._limit = limit
        self.restart(step)

    def restart(self, step: int) -> None:
        """The next sums are those of the step after this one."""
        self._step = step
        self.num_steps = 0

    @property
    def first_step(self) -> int:
        return self._step - self.num_steps + 1

    def note(self, arrived: Sequence[Totals]) -> bool:
        """Whether they have become too many."""
        for totals in arrived:
            self._step += 1
            self.num_steps = self.num_steps + 1 if totals[LEFT_OUT] else 0
            if self.num_steps >= self._limit:
                return True
        return False


class Spikes:
    """Tells a loss that stands out from those before it. Says it once, until the loss is usual again."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=WINDOW)
        self._is_high = False

    def note(self, loss: float) -> float | None:
        """The usual loss, where this one is a spike; a loss that is no number is another matter."""
        if not math.isfinite(loss):
            return None
        was_high, usual = self._is_high, loss
        if len(self._losses) == WINDOW:
            usual = statistics.median(self._losses)
            # So many medians of the distances are a standard deviation, and a few wild losses do not change it.
            spread = 1.4826 * statistics.median(abs(other - usual) for other in self._losses)
            self._is_high = loss - usual > max(NUM_SPREADS * spread, LEAST_SHARE * abs(usual))
        self._losses.append(loss)
        return usual if self._is_high and not was_high else None
