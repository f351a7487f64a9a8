import re

import pytest

from dragoman.data import placeholders
from dragoman.data.placeholders import SYMBOLS, mask, mask_shared_spans, mask_words, restore, shared_words


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("See https://a.de/x?y=1, please.", "See ⟦url1⟧, please."),
        ("www.a.de and www.b.de and www.a.de", "⟦url1⟧ and ⟦url2⟧ and ⟦url1⟧"),
        ("Mail me@site.co.uk.", "Mail ⟦email1⟧."),
        ("a <b>bold</b> word<br/>", "a ⟦tag1⟧bold⟦tag2⟧ word⟦tag3⟧"),
        ("Hello {name}, %s of %d", "Hello ⟦tag1⟧, ⟦tag2⟧ of ⟦tag3⟧"),
        ("literal ⟦url1⟧ here", "literal ⟦term1⟧ here"),
        ("1 < 2 and 3 > 2, 100 % sure", "1 < 2 and 3 > 2, 100 % sure"),
        ("plain text", "plain text"),
    ],
)
def test_mask_and_restore(line: str, masked: str):
    found, restorations = mask(line)
    assert found == masked
    assert restore(found, restorations) == line


def test_more_spans_than_slots_stay_text():
    line = " ".join(f"www.site{number}.de" for number in range(6))
    masked, restorations = mask(line)
    assert masked == "⟦url1⟧ ⟦url2⟧ ⟦url3⟧ ⟦url4⟧ www.site4.de www.site5.de"
    assert restore(masked, restorations) == line


def test_invented_symbols_vanish():
    assert restore("ein ⟦url2⟧ Wort", {"⟦url1⟧": "x"}) == "ein  Wort"


def test_pattern_takes_free_terms_only():
    masked, restorations = placeholders.mask_pattern("⟦term1⟧ 日 本", re.compile("[日本]+"), {"⟦term1⟧": "x"})
    assert masked == "⟦term1⟧ ⟦term2⟧ ⟦term3⟧"
    assert restore(masked, restorations) == "x 日 本"


def test_only_spans_on_both_sides_are_masked_in_training():
    pair = mask_shared_spans("At www.a.de or <i>x</i>", "Auf www.a.de oder <em>x</em>")
    assert (pair.source, pair.target, pair.num_spans) == ("At ⟦url1⟧ or <i>x</i>", "Auf ⟦url1⟧ oder <em>x</em>", 1)
    assert mask_shared_spans("At www.a.de", "Nirgends").num_spans == 0


def test_shared_words_are_numbers_and_names_that_stand_once():
    source, target = "Anna saw 12 of 12 cats in Rome in 1999", "Anna sah 12 Katzen 1999 in Rom, in Rome"
    assert shared_words(source, target) == ["Anna", "Rome", "1999"]
    assert shared_words("nothing in common", "gar nichts in sicht") == []


def test_masked_words_agree_on_both_sides():
    words = ["Anna", "1", "22"]  # the word "1" must not be looked for inside the symbol ⟦term1⟧
    for choice in range(2_000):
        pair = mask_words("Anna saw 1 at 22", "22 sah 1 bei Anna", words, choice)
        found = [re.findall(r"⟦\w+⟧", line) for line in (pair.source, pair.target)]
        assert sorted(found[0]) == sorted(found[1])
        assert len(found[0]) == pair.num_spans >= 1
        assert set(found[0]) <= set(SYMBOLS)
        assert re.sub(r"⟦\w+⟧", "", pair.source + pair.target).isprintable()
        assert pair.source.count("⟦") == pair.num_spans


def test_every_kind_is_taught():
    words = ["Anna", "Bert", "Carl", "Dora"]
    pairs = [mask_words("Anna Bert Carl Dora", "Anna Bert Carl Dora", words, choice) for choice in range(4_000)]
    seen = {symbol for pair in pairs for symbol in re.findall(r"⟦\w+⟧", pair.source)}
    assert seen == set(SYMBOLS)
