"""Sentences that are too long for a model, cut where it hurts least. Knows strings only."""

import re
from collections.abc import Callable

# The best places first: after the end of a sentence, between clauses, between words.
_PLACES = (re.compile(r"(?<=[.!?;:])\s+"), re.compile(r"(?<=[,)])\s+|\s+(?=[(–—-]\s?)"), re.compile(r"\s+"))


def cut(line: str, fits: Callable[[str], bool]) -> list[str]:
    """Parts that fit, in order; joined by spaces they are the line, but for a word that is too long by itself."""
    if len(line) < 2 or fits(line):
        return [line]
    first, second = _halves(line)
    return cut(first, fits) + cut(second, fits)


def _halves(line: str) -> tuple[str, str]:
    middle = len(line) / 2
    for pattern in _PLACES:
        # Not too near the edges: a cut that leaves nearly everything on one side gains nothing.
        places = [match for match in pattern.finditer(line) if 0.2 < match.start() / len(line) < 0.8]
        if places:
            best = min(places, key=lambda match: abs(match.start() - middle))
            return line[: best.start()], line[best.end() :]
    return line[: len(line) // 2], line[len(line) // 2 :]
