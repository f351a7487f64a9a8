"""How attention is cut into programs: every slot once for its query and once for its key, and nothing out of sight."""

import numpy as np
import pytest

from dragoman.model.fused.tiles import FIELDS, GROUP, KEYS, QUERIES, TILE, cut_tiles

CASES = {
    "short": ([5, 9, 30, 31, 2], [7, 4, 33, 20, 3]),
    "one token": ([1], [1]),
    "full tiles": ([64, 64], [64, 64]),
    "long": ([3, 65, 200, 10], [4, 60, 129, 12]),
    "long on the other side": ([3, 10, 10], [4, 100, 12]),
    "many": (list(range(1, 90)), list(range(90, 1, -1))),
}


def slots(lengths: list[int]) -> int:
    return -(-(sum(lengths) + 3) // TILE) * TILE


def cut(queries: list[int], keys: list[int], causal: bool = False) -> np.ndarray:
    return cut_tiles(np.array(queries), np.array(keys), slots(queries), slots(keys), causal)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_slot_is_written_exactly_once(case):
    queries, keys = case
    tiles = cut(queries, keys)
    assert tiles.shape[0] == FIELDS
    seen = [np.zeros(slots(side), dtype=int) for side in case]
    for kind, first_query, last_query, first_key, last_key in tiles.T:
        if kind in (GROUP, QUERIES):
            assert last_query - first_query <= TILE
            seen[0][first_query:last_query] += 1
        if kind in (GROUP, KEYS):
            assert last_key - first_key <= TILE
            seen[1][first_key:last_key] += 1
    assert all((side == 1).all() for side in seen)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("causal", [False, True])
def test_a_program_reaches_all_that_its_tokens_see(case, causal):
    queries, keys = (case[0], case[0]) if causal else case
    ends = np.cumsum(queries), np.cumsum(keys)
    owners = [np.repeat(np.arange(len(side)), side) for side in (queries, keys)]
    for kind, first_query, last_query, first_key, last_key in cut(queries, keys, causal).T:
        for query in range(first_query, min(last_query, ends[0][-1])) if kind in (GROUP, QUERIES) else ():
            sentence = owners[0][query]
            last_seen = query + 1 if causal else ends[1][sentence]
            assert first_key <= ends[1][sentence] - keys[sentence] and last_seen <= last_key
        for key in range(first_key, min(last_key, ends[1][-1])) if kind in (GROUP, KEYS) else ():
            sentence = owners[1][key]
            first_seen = key if causal else ends[0][sentence] - queries[sentence]
            assert first_query <= first_seen and ends[0][sentence] <= last_query


def test_short_sentences_share_programs():
    assert cut([20] * 9, [20] * 9).shape[1] == 3 + 1 + 1, "three of three sentences; then the slots left over"


def test_a_causal_part_of_a_long_sentence_looks_no_further_than_it_must():
    for kind, first_query, last_query, first_key, last_key in cut([200], [200], causal=True).T:
        if kind == QUERIES and last_query <= 200:
            assert (first_key, last_key) == (0, last_query)
        if kind == KEYS and last_key <= 200:
            assert (first_query, last_query) == (first_key, 200)
