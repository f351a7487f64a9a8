"""Sentences to translate, laid end to end, as arrays for a GPU. Knows lengths and ids; numpy alone.

Shape letters: S source slots, B sentences that there is room for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.model.fused.tiles import FIELDS, NONE, cut_tiles

MULTIPLE = 16  # of slots and programs, so that a kernel is compiled for one kind of number only


@dataclass(frozen=True)
class SourceArrays:
    """Slots behind the last token hold one that belongs to no sentence, sees none and is seen by none."""

    tokens_4S: NDArray[np.int32]  # id, place in the sentence, where the sentence begins, and where it ends
    tiles: NDArray[np.int32]  # as `tiles.cut_tiles` gives them
    ranges_2B: NDArray[np.int32]  # where each sentence begins and ends

    @property
    def num_slots(self) -> int:
        return self.tokens_4S.shape[1]


def slots_of(num_tokens: int) -> int:
    return -(-num_tokens // MULTIPLE) * MULTIPLE


def pack_sources(sources: Sequence[Sequence[int]], num_sentences: int) -> SourceArrays:
    """`num_sentences` is what there is room for: those behind the last source are empty."""
    lengths = np.array([len(source) for source in sources], dtype=np.int64)
    last = np.cumsum(lengths)
    num_tokens, num_slots = int(last[-1]), slots_of(int(last[-1]))
    places = np.arange(num_slots)
    tokens = np.zeros((4, num_slots), dtype=np.int32)
    tokens[2:] = places
    tokens[0, :num_tokens] = np.concatenate([np.asarray(source, dtype=np.int32) for source in sources])
    tokens[2, :num_tokens] = np.repeat(last - lengths, lengths)
    tokens[3, :num_tokens] = np.repeat(last, lengths)
    tokens[1] = places - tokens[2]
    ranges = np.zeros((2, num_sentences), dtype=np.int32)
    ranges[:, : len(sources)] = last - lengths, last
    cut = cut_tiles(lengths, lengths, num_slots, num_slots, causal=False)
    tiles = np.full((FIELDS, slots_of(cut.shape[1])), NONE, dtype=np.int32)
    tiles[:, : cut.shape[1]] = cut
    return SourceArrays(tokens, tiles, ranges)
