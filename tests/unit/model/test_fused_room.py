"""How much a search on a GPU takes at once, and sentences as it wants them."""

import numpy as np
import pytest

from dragoman.config import ModelConfig
from dragoman.model.fused.decoding.room import Room, capacity_for, cut_batches, most_sentences, room_in
from dragoman.model.fused.decoding.sources import pack_sources
from dragoman.model.fused.tiles import GROUP, NONE

GB = 1_000_000_000


def test_the_room_is_a_share_of_what_is_free():
    base = ModelConfig()
    large = room_in(140 * GB, base, 32_768, 2)
    assert (large.rows, large.tokens) == (2_048, 32_768)
    assert large.slots >= 2_048 * 256  # the usual limit on the length, for as many rows as there can be
    small = room_in(2 * GB, base, 32_768, 2)
    assert small.slots * 6 * 2 * 512 * 2 <= GB // 4
    assert small.rows * 32_768 * 4 <= GB // 16
    assert small.tokens < small.slots


@pytest.mark.parametrize(
    ("beam", "max_length", "most"),
    [(4, 100, 64), (4, 300, 32), (5, 100, 32), (1, 10, 256), (4, 1_000, 8), (64, 900, 1)],
)
def test_most_sentences_is_a_power_of_two_that_fits(beam, max_length, most):
    room = Room(rows=256, slots=40_000, tokens=1_000)
    assert most_sentences(room, beam, max_length) == most
    assert most * beam <= room.rows
    assert most == 1 or most * beam * max_length <= room.slots


def test_few_sentences_take_a_small_graph():
    assert [capacity_for(number, 512) for number in (1, 16, 17, 200, 512)] == [16, 16, 32, 256, 512]
    assert [capacity_for(number, 4) for number in (1, 4)] == [4, 4]


def test_batches_are_cut_by_length():
    lengths = [3, 9, 1, 7, 7, 2, 30]
    assert cut_batches(lengths, 3, 1_000) == [[6, 1, 3], [4, 0, 5], [2]]
    assert cut_batches(lengths, 100, 16) == [[6], [1, 3], [4, 0, 5, 2]]
    assert cut_batches([], 4, 100) == []


def test_packed_sources():
    packed = pack_sources([[5, 6, 2], [2], [7, 2]], num_sentences=5)
    assert packed.num_slots == 16
    ids, places, first, last = packed.tokens_4S
    assert ids[:6].tolist() == [5, 6, 2, 2, 7, 2]
    assert places[:6].tolist() == [0, 1, 2, 0, 0, 1]
    assert (first[:6].tolist(), last[:6].tolist()) == ([0, 0, 0, 3, 4, 4], [3, 3, 3, 4, 6, 6])
    assert np.array_equal(first[6:], last[6:])  # sees nothing
    assert not places[6:].any()
    assert packed.ranges_2B.tolist() == [[0, 3, 4, 0, 0], [3, 4, 6, 0, 0]]
    kinds = packed.tiles[0].tolist()
    assert kinds[0] == GROUP
    assert kinds[-1] == NONE
    assert packed.tiles.shape[1] % 16 == 0
