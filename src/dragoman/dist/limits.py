"""How long something may take, where a user may say so in the environment: hosts are as slow as they are."""

import math
import os

from dragoman.errors import DragomanError

JOIN_SECONDS = 300.0
MEASURE_SECONDS = 10.0


def check_limits() -> None:
    """For a command, before it starts anything: a wrong value is said once and not by every rank."""
    join_seconds()
    measure_seconds()


def join_seconds() -> float:
    """How long a rank waits for the others."""
    return seconds_of("DRAGOMAN_JOIN_SECONDS", JOIN_SECONDS)


def measure_seconds() -> float:
    """How long the link may be measured before the first step; compute takes its share of that."""
    return seconds_of("DRAGOMAN_MEASURE_SECONDS", MEASURE_SECONDS)


def seconds_of(variable: str, usual: float) -> float:
    """The variable's seconds; the usual ones where it is not set."""
    text = os.environ.get(variable, "")
    try:
        seconds = float(text) if text else usual
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise DragomanError(f"{variable} is {text!r}", "give a number of seconds, more than 0")
    return seconds
