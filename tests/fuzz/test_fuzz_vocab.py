"""Vocabularies from elsewhere, which native code reads, and text that nobody expected."""

import re
import time

from fuzz_samples import make_data
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.vocab import Vocab, unknown_text_pattern

LETTER = r"[^\W\u0590-\U0010ffff]"
KNOWN = "abß1. ▁漢"


def test_damaged_vocabularies_are_one_line_or_encode(tried):
    tried("vocab", 400)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abß1.▁漢xyж語- \t😀é", max_size=30))
def test_unknown_text_is_found_as_the_plain_rule_says(text):
    escaped = re.escape(KNOWN)
    plain = re.compile(rf"{LETTER}*(?![{escaped}]){LETTER}+|[^\s{escaped}]+")
    assert unknown_text_pattern(list(KNOWN)).findall(text) == plain.findall(text)


def test_a_very_long_word_takes_no_longer_than_as_many_short_ones(tmp_path):
    make_data(tmp_path / "data")
    vocab = Vocab.load(tmp_path / "data" / "vocab.model")
    start = time.perf_counter()
    vocab.encode_source("ba" * 50_000)
    assert time.perf_counter() - start < 10, "its square would be minutes"
