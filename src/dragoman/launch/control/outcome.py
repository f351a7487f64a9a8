"""How an attempt ended and whose doing it was. Pure: reports in, one sentence and an exit code out."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.run.control import (
    DIVERGED,
    HUNG,
    INTERRUPTED,
    LOST_PEER,
    NOT_JOINED,
    OUT_OF_MEMORY,
    PREEMPTED,
    WARNINGS,
)

DONE, FAILED, USER_ERROR = 0, 1, 2
USER_ERRORS = (USER_ERROR, OUT_OF_MEMORY, NOT_JOINED)
ASKED = {INTERRUPTED, -signal.SIGINT}
WARNED = {PREEMPTED, *(-number for number in WARNINGS)}
LEFT_BY_SIGNAL = ASKED | WARNED


@dataclass(frozen=True)
class Exit:
    """One rank that did not end well. `code` as a parent process sees it: negative for a signal."""

    host: str
    rank: int
    code: int
    is_after_stop: bool = False  # it was told to end by then


@dataclass(frozen=True)
class Outcome:
    """What an attempt came to, for people and for a shell."""

    exit_code: int
    reason: str
    cause: Exit | None = None
    lost: tuple[str, ...] = ()  # hosts
    is_silent: bool = False  # one of them said nothing any more: it does not come back at once
    is_asked: bool = False  # somebody wanted the run to end
    is_admission: bool = False  # it was ended to begin again with a host more


def find_cause(exits: Sequence[Exit]) -> Exit | None:
    """The rank that took the others down with it; None if nobody failed by itself. `exits` in the order of arrival."""
    guilty = [entry for entry in exits if _blame(entry) is not None]
    return min(guilty, key=lambda entry: _blame(entry) or 0, default=None)


def _blame(entry: Exit) -> int | None:
    """Smaller is likelier. What one who was told to end does at last (a kill, a broken connection) is no cause."""
    if entry.code in LEFT_BY_SIGNAL:
        return None
    if entry.code == LOST_PEER or (entry.is_after_stop and entry.code < 0):
        return 9 if entry.code == LOST_PEER and not entry.is_after_stop else None
    if entry.code < 0:
        return 0
    return 1 if entry.code in USER_ERRORS else 2


def judge(exits: Sequence[Exit], is_stopped: bool, is_preempted: bool = False) -> Outcome:
    """The outcome where every host reported. `is_stopped`: the run was told to end, `is_preempted`: by a machine."""
    cause = find_cause(exits)
    if cause is not None and not (is_stopped and cause.code == LOST_PEER):
        code = USER_ERROR if cause.code in USER_ERRORS else cause.code if cause.code == DIVERGED else FAILED
        return Outcome(code, f"rank {cause.rank} on host {cause.host} {describe_code(cause.code)}", cause)
    if is_preempted or (not is_stopped and _is_warned(exits)):
        return Outcome(PREEMPTED, "told by a signal to leave")
    if is_stopped or exits:
        return Outcome(INTERRUPTED, "stopped" if is_stopped else "interrupted")
    return Outcome(DONE, "finished")


def _is_warned(exits: Sequence[Exit]) -> bool:
    """A rank says it, or all were ended before they could say anything; who is left over is ended with SIGTERM, too."""
    codes = {entry.code for entry in exits}
    return PREEMPTED in codes or (bool(codes & WARNED) and not codes & ASKED)


def describe_code(code: int) -> str:
    """An exit code in words."""
    if code == LOST_PEER:
        return "lost its connection to another rank, which gave no reason"
    if code == HUNG:
        return "hung: no step ended for too long; the lines before say where every rank was"
    if code == OUT_OF_MEMORY:
        return "ran out of memory"
    if code == NOT_JOINED:
        return "did not find the other ranks"
    if code == DIVERGED:
        return "ended because training diverged; the lines before say at which step, and what to try"
    if code >= 0:
        return f"failed with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (out of memory? the kernel's log says so)" if code == -signal.SIGKILL else ""
    return f"was killed by {name}{hint}"
