"""How long something may take, where a user may say so in the environment: hosts are as slow as they are."""

import math
import os

from dragoman.errors import DragomanError

MEASURE_SECONDS = 10.0


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
