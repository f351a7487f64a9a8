"""What a search is asked, and what it finds. Knows no model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchOptions:
    """How to search."""

    beam: int = 4
    length_penalty: float = 1.0
    max_length: int = 256
    num_best: int = 1
    kernels: str = "auto"  # torch: its own operations, whatever the device


@dataclass(frozen=True)
class Found:
    """One finished translation, in pieces."""

    ids: list[int]
    score: float
