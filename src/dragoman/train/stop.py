"""When a run ends. Each rank votes on what it alone knows (signals, its clock); the loop sums the votes, so that all
ranks take the same branch."""

import signal
import time
from types import FrameType

from dragoman.config import TrainConfig
from dragoman.run.control import WARNINGS
from dragoman.train.limits import time_limit
from dragoman.train.progress import Progress

SIGNALS = (*WARNINGS, signal.SIGINT)
LEAVING = ("interrupted", "preempted")  # reasons to save and leave, not to end
DIVERGED = "diverged"  # the reason of a run that ends because its numbers are none
UNFINISHED = (*LEAVING, DIVERGED)
MACHINE_VOTE = 1e6  # more than all people together: any rank's machine that wants it to leave decides the reason


class Stopper:
    """Watches limits and signals. A signal asks to save and leave; only a second Ctrl-C ends the rank at once."""

    def __init__(self, config: TrainConfig, progress: Progress, bought_seconds: float | None = None) -> None:
        self._config = config
        self._limit = time_limit(config.max_minutes, bought_seconds)
        self._progress = progress
        self._since = time.monotonic() - progress.trained_seconds
        self._signal: int | None = None
        self._is_ending = False
        for number in SIGNALS:
            signal.signal(number, self._note)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signal = self._signal or number  # later ones are echoes: a launcher ends whoever is left with SIGTERM
        # SIGTERM may come several times for one cause: Linux sends one per thread when the launcher dies.
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def tick(self) -> None:
        """Bring the run's clock up to date; it counts over all attempts."""
        self._progress.trained_seconds = time.monotonic() - self._since

    def votes(self) -> tuple[float, float]:
        """(interrupted, out of time) as this rank sees it."""
        is_late = self._limit is not None and time.monotonic() - self._since >= self._limit.seconds
        asks = {None: 0.0, signal.SIGINT: 1.0}.get(self._signal, MACHINE_VOTE)
        return asks, float(is_late)

    def is_leaving(self) -> bool:
        """Whether work that may be left out should be, to save in time; the last evaluation of a run may not be."""
        return self._signal is not None and not self._is_ending

    def reason(self, interrupted: float = 0.0, late: float = 0.0) -> str | None:
        """Why the run ends now, from the votes of all ranks and from what all ranks know; None to go on."""
        reason = self._reason(interrupted, late)
        self._is_ending = reason is not None
        return reason

    def _reason(self, interrupted: float, late: float) -> str | None:
        if self._progress.step >= self._config.max_steps:
            return "max_steps"
        if interrupted:
            return "preempted" if interrupted >= MACHINE_VOTE else "interrupted"
        if late:
            return "max_minutes" if self._limit is None else self._limit.reason
        patience = self._config.patience
        if patience and self._progress.num_evals_without_gain >= patience:
            return "patience"
        return None
