"""What a search is asked, and what it finds. Knows no model and no torch."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """Words drawn instead of searched for."""

    top_k: int = 0  # among the so many likeliest; 0: among all
    temperature: float = 1.0  # below 1: nearer to the likeliest
    seed: int = 0


@dataclass(frozen=True)
class SearchOptions:
    """How to search."""

    beam: int = 4
    length_penalty: float = 1.0
    max_length: int = 256
    num_best: int = 1
    kernels: str = "auto"  # torch: its own operations, whatever the device
    sampling: Sampling | None = None
    attention: bool = False  # whether to tell where each piece came from

    @property
    def num_found(self) -> int:
        """So many translations cost no more than `num_best`: with a length penalty a beam goes on until it is full."""
        return self.beam if self.sampling is None and self.length_penalty else self.num_best


@dataclass(frozen=True)
class Found:
    """One finished translation, in pieces."""

    ids: list[int]
    score: float
    # For every piece, how much it looked at each piece of the source (its end left out), where it was asked for.
    attention: Sequence[Sequence[float]] | None = None
