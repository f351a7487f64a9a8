"""How attention over packed sentences is cut into programs. Knows lengths, not words; numpy alone.

A group of whole sentences that fits a tile on both sides is one program: nothing beyond the tile concerns it. A longer
sentence is cut twice: into parts of its queries, each of which looks along all keys, and, for the gradients of those,
into parts of its keys, each of which looks along all queries.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

TILE = 64  # tokens; what the matrix units of a GPU take at once
GROUP, QUERIES, KEYS, NONE = 0, 1, 2, 3  # kinds of programs
FIELDS = 5  # kind, first and last query, first and last key


def cut_tiles(query_lengths: Ints, key_lengths: Ints, query_slots: int, key_slots: int, causal: bool) -> Ints:
    """(FIELDS, number of programs). Every slot is in one program for its query, and in one for its key."""
    tiles: list[tuple[int, int, int, int, int]] = []
    group_query, group_key, query, key = 0, 0, 0, 0
    for num_queries, num_keys in zip(query_lengths.tolist(), key_lengths.tolist(), strict=True):
        last_query, last_key = query + num_queries, key + num_keys
        if last_query - group_query > TILE or last_key - group_key > TILE:
            if query > group_query:
                tiles.append((GROUP, group_query, query, group_key, key))
            group_query, group_key = query, key
            if num_queries > TILE or num_keys > TILE:
                tiles += _cut_sentence(query, last_query, key, last_key, causal)
                group_query, group_key = last_query, last_key
        query, key = last_query, last_key
    if query > group_query:
        tiles.append((GROUP, group_query, query, group_key, key))
    # Slots behind the last token: they see nothing, but something must be written there.
    tiles += [(QUERIES, *part, key, key) for part in _parts(query, query_slots)]
    tiles += [(KEYS, query, query, *part) for part in _parts(key, key_slots)]
    return np.array(tiles, dtype=np.int64).T


def _cut_sentence(
    first_query: int, last_query: int, first_key: int, last_key: int, causal: bool
) -> list[tuple[int, int, int, int, int]]:
    return [
        *(
            (QUERIES, first, last, first_key, last if causal else last_key)
            for first, last in _parts(first_query, last_query)
        ),
        *(
            (KEYS, first if causal else first_query, last_query, first, last)
            for first, last in _parts(first_key, last_key)
        ),
    ]


def _parts(first: int, last: int) -> list[tuple[int, int]]:
    return [(start, min(start + TILE, last)) for start in range(first, last, TILE)]
