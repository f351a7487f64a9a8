import sys
import types

import pytest

from dragoman.config import DataConfig
from dragoman.data import clean


def sides(source: str, target: str, languages: tuple[str, str] = ("en", "de")) -> clean.Sides:
    return clean.Sides(clean.measure(source, languages[0]), clean.measure(target, languages[1]), languages)


def rejects(source: str, target: str, languages: tuple[str, str] = ("en", "de"), **settings) -> list[str]:
    found = clean.reject(sides(source, target, languages), DataConfig(**settings))
    return [name for name, indices in found.items() if len(indices)]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("  two  spaces \r", "two spaces"),
        ("tab\there", "tab here"),
        ("no\u00a0break\u2009thin", "no break thin"),
        ("zero\u200bwidth soft\u00adhyphen", "zerowidth softhyphen"),
        ("u\u0308ber", "über"),
        ("u\u200b\u0308ber", "über"),
        ("line\u2028separator", "line separator"),
        ("a▁b", "a_b"),
        ("日本 語", "日本 語"),
    ],
)
def test_normalization(raw: str, expected: str):
    assert clean.normalize_lines([raw], "nfc") == [expected]
    data = f"before\n{raw}\n after \n".encode()
    assert clean.normalize_bytes(data, "nfc").split("\n") == ["before", expected, "after"]


def test_normalization_forms():
    assert clean.normalize_lines(["ﬁne e\u0301"], "nfkc") == ["fine é"]
    assert clean.normalize_lines(["ﬁne e\u0301"], "nfc") == ["ﬁne é"]
    assert clean.normalize_lines(["ﬁne e\u0301"], "none") == ["ﬁne e\u0301"]


def test_measure_counts_each_line():
    side = clean.measure("One two\n\nдва 3\n𝒳 😀 ü", "en")
    assert side.lines == ["One two", "", "два 3", "𝒳 😀 ü"]
    assert side.num_chars.tolist() == [7, 0, 5, 5]
    assert side.num_words.tolist() == [2, 0, 2, 3]
    assert side.num_letters.tolist() == [6, 0, 3, 2]
    assert side.num_script_letters.tolist() == [6, 0, 0, 1]


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("A good pair.", "Ein gutes Paar.", None),
        ("", "Nicht leer", "empty"),
        ("Not empty", "", "empty"),
        ("one " * 201, "eins " * 100, "too_long"),
        ("Yes", "Ja, das ist in der Tat richtig", "length_ratio"),
        ("the same", "the same", "identical"),
        ("12 - 34 - 56 !!", "zwölf und mehr", "non_letters"),
        ("An English line", "Русский текст тут", "wrong_script"),
    ],
)
def test_each_filter_drops_its_own(source: str, target: str, reason: str | None):
    assert rejects(source.strip(), target.strip()) == ([reason] if reason else [])


def test_a_pair_is_blamed_once_on_the_first_filter():
    assert rejects("12", "12") == ["identical"]
    assert rejects("12", "12", filters=["non_letters", "identical"]) == ["non_letters"]


def test_filters_follow_the_settings():
    assert rejects("one two three", "eins zwei drei", max_words=2) == ["too_long"]
    assert rejects("one", "eins zwei", min_words=2) == ["empty"]
    assert rejects("one", "eins zwei drei vier", filters=["empty"]) == []
    assert rejects("", "etwas", filters=["identical"]) == ["empty"], "an empty side teaches nothing"
    assert rejects("one", "zwei", filters=["identical"], min_words=5) == []


def test_script_is_that_of_the_language():
    assert rejects("Hello there", "Привет всем", languages=("en", "ru")) == []
    assert rejects("Hello there", "Привет всем", languages=("en", "xx")) == [], "an unknown language has no script"


def test_invalid_lines_are_found():
    assert clean.invalid_lines("gut\nüber\n".encode()) == {}
    found = clean.invalid_lines(b"ok\nbad \xff\nnul \0\n\xc3\xbc\n")
    assert found == {1: "is not valid UTF-8", 2: "has a NUL byte"}


def test_language_filter_drops_only_what_is_sure(monkeypatch: pytest.MonkeyPatch):
    answers = {"good": ("en", 0.99), "gut": ("de", 0.99), "bien": ("fr", 0.99), "hm": ("fr", 0.5)}

    class Identifier:
        @classmethod
        def from_model_file(cls, path: str, norm_probs: bool) -> "Identifier":
            assert norm_probs
            return cls()

        def classify(self, line: str) -> tuple[str, float]:
            return answers[line]

    module = types.SimpleNamespace(LanguageIdentifier=Identifier, MODEL_FILE="model")
    monkeypatch.setitem(sys.modules, "py3langid", types.ModuleType("py3langid"))
    monkeypatch.setitem(sys.modules, "py3langid.langid", module)
    clean._language_identifier.cache_clear()
    pairs = sides("good\ngood\ngood", "gut\nbien\nhm")
    assert clean.wrong_language(pairs, DataConfig()).tolist() == [False, True, False]
    clean._language_identifier.cache_clear()
