"""How far a run has come, and when it is time to save. No tensors."""

import math
import time
from dataclasses import dataclass, replace

from dragoman.run.folder import Pointer
from dragoman.run.records import EvalRecord


@dataclass
class Progress:
    """How far a run has come: all of its state beside tensors. Batches and seeds follow from the step."""

    step: int = 0
    target_tokens: int = 0
    trained_seconds: float = 0.0
    best_loss: float | None = None
    best_bleu: float | None = None
    best_loss_step: int = 0
    best_bleu_step: int = 0
    num_evals_without_gain: int = 0
    rate_factor: float = 1.0  # of the schedule's learning rate; less once the run was rolled back

    def roll_back(self, earlier: "Progress", rate_factor: float) -> None:
        """Stand where an earlier one stood, in place: others hold this object. Time goes on."""
        trained = self.trained_seconds
        vars(self).update(vars(replace(earlier, trained_seconds=trained, rate_factor=rate_factor)))

    def note_evaluation(self, record: EvalRecord) -> list[Pointer]:
        """Take in the first dev set's result; which pointers now lead to this step."""
        gains: list[Pointer] = []
        # A first loss that is no number must not become the best: nothing is smaller than it.
        if record.loss < (math.inf if self.best_loss is None else self.best_loss):
            self.best_loss, self.best_loss_step = record.loss, record.step
            gains.append("best-loss")
        if record.bleu is not None and (self.best_bleu is None or record.bleu > self.best_bleu):
            self.best_bleu, self.best_bleu_step = record.bleu, record.step
            gains.append("best-bleu")
        self.num_evals_without_gain = 0 if "best-loss" in gains else self.num_evals_without_gain + 1
        return gains


class SaveTimer:
    """Says when the last save is too long ago. Rank 0's word counts: clocks of ranks differ."""

    def __init__(self, every_minutes: float) -> None:
        self._seconds = every_minutes * 60
        self.reset()

    def is_due(self) -> bool:
        return self._is_hurried or (self._seconds > 0 and time.monotonic() - self._since >= self._seconds)

    def hurry(self) -> None:
        """There is something that must not be lost: the next step is saved."""
        self._is_hurried = True

    def reset(self) -> None:
        self._is_hurried = False
        self._since = time.monotonic()
