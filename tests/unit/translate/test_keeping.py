"""What a translation must keep, and that it does, whatever the model makes of it."""

import re

import pytest

from dragoman.translate.keeping import SEPARATED_NUMBER, lost_spans, spans_to_keep
from dragoman.translate.translator import Translator

# Every one of these must come back as it is. The model of these tests can hardly translate at all.
KEPT = [
    "https://example.org/a/b?c=1&d=%20#e",
    "http://münchen.example/ä",
    "ftp://files.example.org/x.tar.gz",
    "www.example.org/index.html",
    "anna.meier+news@mail.example.org",
    "o_neill@sub.example.co.uk",
    "😀",
    "👩‍💻",
    "🇩🇪",
    "👍🏽",
    "❤️",
    "3️⃣",
    "42",
    "3.14",
    "1,250.50",
    "10:30",
    "2026-11-16",
    "1/2",
    "007",
    "1'000'000",
    "<b>",
    "</b>",
    '<a href="https://example.org/?q=1" title="Two words">',
    "<br/>",
    "{name}",
    "%s",
    "%1$s",
]
SENTENCES = [
    *(f"The old baker gave {span} to his neighbour." for span in KEPT),
    "At 10:30 on 3 May 2026, 1,250.50 dollars, 99 cents and 7 apples went to anna@example.org, see www.example.org.",
    "<p>One <b>two</b> <i>three</i> <u>four</u> <s>five</s> 6 7 8 9 10 11 12</p>",
    "https://a.example https://b.example https://c.example https://d.example https://e.example https://f.example",
    "😀😀 and 😀 and 3 and 3 and 33",
    "2026",
]


@pytest.fixture(scope="module")
def translator(trained_run) -> Translator:
    return Translator(trained_run, device="cpu")


def test_everything_on_the_list_is_found():
    for span in KEPT:
        assert span in spans_to_keep(f"The old baker gave {span} to his neighbour."), span


@pytest.mark.parametrize(
    ("line", "translation", "lost"),
    [
        ("Pay 5 now", "Zahle 50 jetzt", ["5"]),
        ("Pay 5 now", "Zahle 5 jetzt", []),
        ("1,250.50", "1.250,50", ["1,250.50"]),
        ("3 or 3", "3", ["3"]),
        ("see www.a.org", "siehe (www.a.org)", []),
        ("no span at all", "", []),
        ("MP3 and H2O", "so", []),
    ],
)
def test_what_is_lost(line, translation, lost):
    assert lost_spans(line, translation) == lost


@pytest.mark.parametrize(
    ("line", "hidden"),
    [("the 1,250th time", ["1,250"]), ("a 777-300ER at 10:30am", ["777-300", "10:30"]), ("V1.2, 3 and 42nd", [])],
)
def test_numbers_with_signs_are_hidden_whatever_letters_follow(line, hidden):
    assert SEPARATED_NUMBER.findall(line) == hidden


def test_nothing_on_the_list_is_lost_by_a_model_that_knows_nothing(translator):
    results = translator.translate(SENTENCES, beam=2, max_length=30, keep=True, alignments=True)
    for line, best in zip(SENTENCES, results, strict=True):
        assert lost_spans(line, best[0].text) == [], best[0].text
        for span in spans_to_keep(line):
            assert span in best[0].text
        # Words that the pairs name exist.
        assert best[0].alignment is not None
        assert all(i < len(line.split()) and j < len(best[0].text.split()) for i, j in best[0].alignment)


def test_such_a_model_does_lose_them_where_nobody_looks(translator):
    results = translator.translate(SENTENCES, beam=2, max_length=30)
    assert any(lost_spans(line, best[0].text) for line, best in zip(SENTENCES, results, strict=True))


def test_a_model_that_never_learned_symbols_keeps_them_too(translator, monkeypatch):
    monkeypatch.setattr(translator._splitter, "_is_masking", False)
    for line, best in zip(SENTENCES, translator.translate(SENTENCES, beam=1, max_length=20, keep=True), strict=True):
        assert lost_spans(line, best[0].text) == [], best[0].text


def test_a_number_of_two_thousand_digits_takes_no_time(translator):
    line = "1," * 2_000 + "1 <" + "a" * 5_000 + " 😀" * 500
    assert spans_to_keep(line)
    assert re.sub(r"\s", "", translator.translate([line], beam=1, max_length=5, keep=True)[0][0].text)
