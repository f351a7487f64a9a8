"""Chance with a memory: draws words so that all of them come up about equally often.

Knows no grammar. Only `random.Random.random` is used, whose sequence is the same on every Python.
"""

from collections.abc import Sequence
from random import Random
from typing import Protocol, TypeVar


class Entry(Protocol):
    """A content word of the lexicon."""

    @property
    def english(self) -> str: ...
    @property
    def german(self) -> str: ...


T = TypeVar("T")
E = TypeVar("E", bound=Entry)


class Draw:
    def __init__(self, seed: int | str) -> None:
        self._random = Random(seed).random
        self._counts: dict[Entry, int] = {}
        self.used: list[Entry] = []

    def begin(self) -> None:
        """A new sentence; what was drawn for the last one and not kept is forgotten."""
        self.used = []

    def keep(self) -> None:
        for entry in self.used:
            self._counts[entry] = self._counts.get(entry, 0) + 1

    def use(self, entry: Entry) -> None:
        self.used.append(entry)

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def one_of(self, pool: Sequence[T]) -> T:
        return pool[int(self._random() * len(pool))]

    def word(self, pool: Sequence[E]) -> E:
        """A word for this sentence: see `rarest`."""
        best = self.rarest(pool)
        self.used.append(best)
        return best

    def rarest(self, pool: Sequence[E]) -> E:
        """The rarest so far of four random words, and not one that the sentence already has."""
        best = self.one_of(pool)
        for _ in range(3):
            other = self.one_of(pool)
            if best in self.used or (other not in self.used and self._counts.get(other, 0) < self._counts.get(best, 0)):
                best = other
        return best
