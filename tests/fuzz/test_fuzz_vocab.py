"""Vocabularies from elsewhere, which native code reads, and text that nobody expected."""

import re
import time

import pytest
from fuzz_samples import make_data
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from dragoman.data.vocab import MAX_SIZE, Vocab, unknown_text_pattern
from dragoman.errors import DragomanError

LETTER = r"[^\W\u0590-\U0010ffff]"
KNOWN = "abß1. ▁漢"


@pytest.fixture
def model(tmp_path):
    make_data(tmp_path / "data")
    return tmp_path / "data" / "vocab.model"


def test_damaged_vocabularies_are_one_line_or_encode(tried):
    tried("vocab", 400)


def test_a_vocabulary_whose_pieces_are_no_text_is_refused(model):
    data = model.read_bytes()
    assert "▁ba".encode() in data
    model.write_bytes(data.replace("▁ba".encode(), b"\xff\xfe\xff\xfe\xff"))
    with pytest.raises(DragomanError, match="not a SentencePiece model"):
        Vocab.load(model)


def test_a_vocabulary_that_16_bits_cannot_number_is_refused(model):
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.read_bytes())
    for number in range(MAX_SIZE):
        proto.pieces.add(piece=f"piece {number}", score=0.0, type=1)
    model.write_bytes(proto.SerializeToString())
    with pytest.raises(DragomanError, match="16 bits"):
        Vocab.load(model)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abß1.▁漢xyж語- \t😀é", max_size=30))
def test_unknown_text_is_found_as_the_plain_rule_says(text):
    escaped = re.escape(KNOWN)
    plain = re.compile(rf"{LETTER}*(?![{escaped}]){LETTER}+|[^\s{escaped}]+")
    assert unknown_text_pattern(list(KNOWN)).findall(text) == plain.findall(text)


def test_a_very_long_word_takes_no_longer_than_as_many_short_ones(model):
    vocab = Vocab.load(model)
    start = time.perf_counter()
    vocab.encode_source("ba" * 50_000)
    assert time.perf_counter() - start < 10, "its square would be minutes"
