from pathlib import Path

import numpy as np
import pytest
from data_samples import sentences

from dragoman.data import shuffle
from dragoman.data.shuffle import NUM_BUCKETS, Pairs


def make_pairs(texts: list[tuple[str, str]], corpus: int = 0, first_line: int = 1) -> Pairs:
    sources, targets = [pair[0] for pair in texts], [pair[1] for pair in texts]
    orders = shuffle.orders_of(corpus, np.arange(first_line, first_line + len(texts)))
    return Pairs(shuffle.text_keys(sources, targets, seed=1), orders, sources, targets)


def write(folder: Path, *groups: Pairs) -> list[Path]:
    paths = [folder / f"{number}.bin" for number in range(len(groups))]
    for path, pairs in zip(paths, groups, strict=True):
        shuffle.write_chunk(shuffle.sort_pairs(pairs), path)
    return paths


def texts_of(pairs: Pairs) -> list[tuple[str, str]]:
    return list(zip(pairs.sources, pairs.targets, strict=True))


def test_order_does_not_depend_on_chunks_or_ranges(tmp_path: Path):
    texts = sentences(500)
    whole = shuffle.read_pairs(write(tmp_path, make_pairs(texts)), 0, NUM_BUCKETS)
    cut = write(tmp_path, make_pairs(texts[:77]), make_pairs(texts[77:], first_line=78))
    ranges = shuffle.cut_buckets(cut, max_bytes=2_000)
    assert len(ranges) > 5
    pieces = [pair for first, last in ranges for pair in texts_of(shuffle.read_pairs(cut, first, last))]
    assert pieces == texts_of(whole)
    assert sorted(pieces) == sorted(texts)
    assert pieces != texts


def test_seed_changes_the_order():
    sources, targets = ["a", "b"], ["c", "d"]
    assert not np.array_equal(shuffle.text_keys(sources, targets, 1), shuffle.text_keys(sources, targets, 2))
    assert np.array_equal(shuffle.text_keys(sources, targets, 1), shuffle.text_keys(sources, targets, 1))


def test_a_pair_cannot_be_mistaken_for_another_cut():
    assert len(set(shuffle.text_keys(["a b", "a"], ["c", "b c"], 1).tolist())) == 2


def test_duplicates_meet_and_the_lowest_line_comes_first(tmp_path: Path):
    texts = [("same", "gleich"), ("other", "anders")]
    paths = write(tmp_path, make_pairs(texts, corpus=1), make_pairs(texts[:1], corpus=0, first_line=9))
    pairs = shuffle.read_pairs(paths, 0, NUM_BUCKETS)
    is_duplicate = shuffle.find_duplicates(pairs.keys)
    assert [pairs.sources[index] for index in np.flatnonzero(is_duplicate)] == ["same"]
    kept = pairs.select(np.flatnonzero(~is_duplicate))
    assert sorted(zip(kept.sources, kept.corpora.tolist(), kept.lines.tolist(), strict=True)) == [
        ("other", 1, 2),
        ("same", 0, 9),
    ]


def test_buckets_hold_their_text(tmp_path: Path):
    texts = sentences(50)
    paths = write(tmp_path, make_pairs(texts))
    expected = sum(len(source) + len(target) + 2 for source, target in texts)
    assert shuffle.read_bucket_bytes(paths[0]).sum() == expected


@pytest.mark.parametrize(
    ("weight", "low", "high"), [(0.25, 80, 120), (1.0, 400, 400), (2.0, 800, 800), (2.5, 960, 1040)]
)
def test_weights_repeat_pairs(weight: float, low: int, high: int):
    pairs = make_pairs(sentences(400))
    weighted, left_out = shuffle.with_copies(pairs, weight)
    assert low <= len(weighted) <= high
    assert len(set(weighted.keys.tolist())) == len(weighted), "copies are spread over the whole order"
    assert weighted.is_first_copy.sum() + len(left_out) == 400
    again, _ = shuffle.with_copies(pairs, weight)
    assert np.array_equal(again.keys, weighted.keys)


def test_kept_duplicates_are_spread():
    pairs = make_pairs([("same", "gleich")] * 20)
    assert len(set(pairs.keys.tolist())) == 1
    assert len(set(shuffle.spread_duplicates(pairs).keys.tolist())) == 20
