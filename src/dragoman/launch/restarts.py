"""Whether a run that failed tries again: by what ended it, and as long as its attempts get anywhere. No torch."""

from dragoman.launch.control.outcome import DONE, USER_ERROR, Outcome
from dragoman.run.control import DIVERGED, HUNG, INTERRUPTED, LOST_PEER, NOT_JOINED, PREEMPTED
from dragoman.run.folder import RunFolder

CHANCES = (LOST_PEER, HUNG, NOT_JOINED)  # codes of ranks that another attempt may spare, as it may a signal
CERTAIN = (USER_ERROR, DIVERGED)  # those that it will not


class Restarts:
    """Counts the attempts in a row that brought no new checkpoint."""

    def __init__(self, folder: RunFolder, max_restarts: int) -> None:
        self._folder = folder
        self._max_restarts = max_restarts
        self._num_in_vain = 0
        self._blamed: set[str | None] = set()  # hosts whose ranks ended those attempts
        self._num_bytes = self._recorded_bytes()
        self._last_step = self._folder.pointed_step("last")

    def may_follow(self, outcome: Outcome) -> bool:
        """Whether another attempt should, after one that ended so."""
        if not self._is_worth_it(outcome):
            self._blamed.add(None)
            return False
        last_step = self._folder.pointed_step("last")
        if last_step != self._last_step:
            self.forgive()
        self._last_step = last_step
        self._num_in_vain += 1
        self._blamed.add(None if outcome.cause is None else outcome.cause.host)
        return self._num_in_vain <= self._max_restarts

    @property
    def culprit(self) -> str | None:
        """The one host on which all these attempts failed, if it is one."""
        return next(iter(self._blamed)) if self._max_restarts and len(self._blamed) == 1 else None

    def forgive(self) -> None:
        """Count anew."""
        self._num_in_vain = 0
        self._blamed.clear()

    def _is_worth_it(self, outcome: Outcome) -> bool:
        """A run that never trained fails for a reason that stays, unless a machine or a process was taken from it."""
        code = None if outcome.cause is None else outcome.cause.code
        if outcome.is_asked or outcome.exit_code in (DONE, INTERRUPTED, PREEMPTED) or code in CERTAIN:
            return False
        if outcome.lost or (code is not None and (code < 0 or code in CHANCES)):
            return True
        return self._recorded_bytes() > self._num_bytes

    def _recorded_bytes(self) -> int:
        path = self._folder.steps_path
        return path.stat().st_size if path.exists() else 0
