"""Text given to `prepare`: plain, packed, in columns, and damaged."""

import zstandard

from dragoman.data.corpus import read_blocks


def test_damaged_text_is_one_line_or_clean_pairs(tried):
    tried("text", 150)


def test_prepare_leaves_nothing_behind_of_text_that_it_refuses(tried):
    tried("prepare", 100)


def test_a_small_packed_file_never_becomes_a_giant_block(tmp_path):
    path = tmp_path / "zeros.zst"
    path.write_bytes(zstandard.compress(b"a b\n" * (64 << 20)))
    sizes = [len(block) for block in read_blocks(path)]
    assert sum(sizes) == 256 << 20
    assert max(sizes) <= 128 << 20, path.stat().st_size
