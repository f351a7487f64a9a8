"""A packed batch as words: every token knows its sentence and its partner, and what is left over sees nothing."""

import numpy as np

from dragoman.model.fused.tiles import NONE
from dragoman.model.fused.words import Sentences, Slots, pack, places_of, set_header

SLOTS = Slots(64, 64, (16, 16, 16))


def sentences() -> Sentences:
    source = np.array([5, 6, 2, 7, 2]), np.array([3, 2])
    return Sentences(*source, np.array([2, 8, 2, 9, 10]), np.array([8, 2, 9, 10, 2]), np.array([2, 3]))


def part(words: np.ndarray, name: str) -> np.ndarray:
    first, last = places_of(SLOTS)[name]
    return words[first:last]


def test_tokens_and_their_sentences():
    words = pack(sentences(), SLOTS)
    assert part(words, "source_ids")[:6].tolist() == [5, 6, 2, 7, 2, 0]
    assert part(words, "labels")[:6].tolist() == [8, 2, 9, 10, 2, 0]
    assert part(words, "input_ids")[:5].tolist() == [2, 8, 2, 9, 10]
    assert part(words, "weights").view(np.float32)[:7].tolist() == [1, 1, 1, 1, 1, 0, 0]
    assert part(words, "source_first")[:5].tolist() == [0, 0, 0, 3, 3]
    assert part(words, "source_last")[:5].tolist() == [3, 3, 3, 5, 5]
    assert part(words, "target_first")[:5].tolist() == [0, 0, 2, 2, 2]
    assert part(words, "partner_first")[:5].tolist() == [0, 0, 3, 3, 3]
    assert part(words, "partner_last")[:5].tolist() == [3, 3, 5, 5, 5]


def test_what_is_left_over_sees_nothing():
    words = pack(sentences(), SLOTS)
    for side in ("source", "target", "partner"):
        assert (part(words, f"{side}_first")[5:] == part(words, f"{side}_last")[5:]).all()
    assert (part(words, "source_first")[5:] == np.arange(5, 64)).all(), "its own place: position 0"


def test_programs_that_are_not_needed_are_marked():
    table = part(pack(sentences(), SLOTS), "to_source").reshape(5, 16)
    assert table[:, 0].tolist() == [0, 0, 5, 0, 5]
    assert table[0, 3:].tolist() == [NONE] * 13


def test_what_does_not_fit_is_not_packed():
    assert pack(sentences(), Slots(4, 64, (16, 16, 16))) is None
    assert pack(sentences(), Slots(64, 4, (16, 16, 16))) is None
    assert pack(sentences(), Slots(64, 64, (1, 16, 16))) is None


def test_seed_and_scale_stand_in_the_header():
    words = pack(sentences(), SLOTS)
    set_header(words, (7 << 32) + 9, 0.25)
    assert words[:2].tolist() == [9, 7]
    assert words[2:3].view(np.float32).tolist() == [0.25]
