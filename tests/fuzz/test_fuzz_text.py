"""Text given to `prepare`: plain, packed, in columns, and damaged."""

import pytest
import zstandard
from fuzz_samples import make_text

from dragoman.config import DataConfig, VocabConfig
from dragoman.data.corpus import Corpus, read_blocks
from dragoman.data.prepare import prepare
from dragoman.data.request import Request
from dragoman.errors import DragomanError


def test_damaged_text_is_one_line_or_clean_pairs(tried):
    tried("text", 150)


def test_prepare_leaves_nothing_behind_of_text_that_it_refuses(tried):
    tried("prepare", 100)


def test_damaged_unfinished_work_is_one_line_and_the_next_try_starts_anew(tmp_path):
    make_text(tmp_path / "text", num_pairs=300)
    corpus = Corpus("plain", tmp_path / "text" / "plain.en", tmp_path / "text" / "plain.de")
    data, vocab = DataConfig(filters=[]), VocabConfig(size=330)
    request = Request(tmp_path / "data", "en-de", (corpus,), (), (), data, vocab, num_workers=1)

    def interrupt(stage, done, total):
        if stage == "encoding":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(request, interrupt)
    (tmp_path / "data" / ".work" / "vocab.json").write_bytes(b"\xff")
    with pytest.raises(DragomanError, match="unfinished work"):
        prepare(request, lambda stage, done, total: None)
    assert prepare(request, lambda stage, done, total: None).is_new


def test_a_small_packed_file_never_becomes_a_giant_block(tmp_path):
    path = tmp_path / "zeros.zst"
    path.write_bytes(zstandard.compress(b"a b\n" * (64 << 20)))
    sizes = [len(block) for block in read_blocks(path)]
    assert sum(sizes) == 256 << 20
    assert max(sizes) <= 128 << 20, path.stat().st_size
