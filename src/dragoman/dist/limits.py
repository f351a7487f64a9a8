"""How long something may take, where a user may say so in the environment: hosts are as slow as they are."""

import math
import os

from dragoman.errors import DragomanError


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
