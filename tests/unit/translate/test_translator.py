"""Text in, text out: order, blank lines, n-best, and text that no model can translate."""

import shutil
from types import SimpleNamespace

import pytest

from dragoman.errors import DragomanError
from dragoman.translate import engine_torch as module
from dragoman.translate.translator import Translator

LINES = [
    "The old baker gave his neighbour a warm cake.",
    "The dog sleeps.",
    "",
    "We have not found the keys because it was dark.",
    "   ",
    "She sings.",
]


@pytest.fixture(scope="module")
def translator(trained_run) -> Translator:
    return Translator(trained_run, device="cpu")


@pytest.fixture
def copying(monkeypatch):
    """A search whose translation is the source itself, so that what goes in can be followed through."""

    def search(_model, sources, _eos, options, _prefixes=None):
        assert max(len(source) for source in sources) <= 1_024
        return [[SimpleNamespace(ids=source[:-1], score=0.0)] * options.num_best for source in sources]

    monkeypatch.setattr(module, "search", search)


def texts(results) -> list[str]:
    return [best[0].text for best in results]


def test_every_line_comes_back_at_its_own_place(translator, copying):
    lines = [f"{'word ' * (i * 7 % 11)}number {i}" for i in range(60)]
    assert texts(translator.translate(lines, batch_tokens=200)) == lines


def test_blank_lines_stay_blank(translator):
    results = translator.translate(LINES, beam=2, max_length=6, num_best=2)
    assert [len(best) for best in results] == [2] * 6
    assert [text == "" for text in texts(results)] == [False, False, True, False, True, False]
    assert translator.translate([]) == []
    assert texts(translator.translate(["", " \t"])) == ["", ""]


def test_batches_do_not_change_a_translation(translator):
    whole = translator.translate(LINES, beam=2, max_length=8)
    alone = [translator.translate([line], beam=2, max_length=8)[0] for line in LINES]
    assert texts(whole) == texts(alone)
    small = translator.translate(LINES, beam=2, max_length=8, batch_tokens=1)
    assert texts(small) == texts(whole)


def test_n_best_are_sorted_and_distinct(translator):
    (best,) = translator.translate(LINES[:1], num_best=4, beam=1, max_length=8)
    scores = [each.score for each in best]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert scores[0] < 0
    assert len({each.text for each in best}) > 1


def test_a_longer_limit_gives_a_longer_translation_and_does_not_cut_the_source(translator, monkeypatch):
    seen = []

    def search(_model, sources, _eos, options, _prefixes=None):
        seen.append((len(sources[0]), options.max_length))
        return [[SimpleNamespace(ids=[], score=0.0)] for _ in sources]

    monkeypatch.setattr(module, "search", search)
    for limit in (3, 50, 5_000):
        translator.translate(["one two three four five six seven eight nine ten"], max_length=limit)
    assert [limit for _, limit in seen] == [3, 50, 1_024]
    assert len({length for length, _ in seen}) == 1


def test_the_recipe_gives_the_defaults(translator, monkeypatch):
    seen = []
    monkeypatch.setattr(
        module, "search", lambda model, sources, eos, options, prefixes: seen.append(options) or [[]] * len(sources)
    )
    translator.translate(["A dog."])
    translator.translate(["A dog."], beam=2, length_penalty=0.0, max_length=9, num_best=3)
    assert (seen[0].beam, seen[0].length_penalty, seen[0].max_length, seen[0].num_best) == (4, 1.0, 256, 1)
    assert (seen[1].beam, seen[1].length_penalty, seen[1].max_length, seen[1].num_best) == (3, 0.0, 9, 3)


@pytest.mark.parametrize(
    "line",
    [
        "See https://example.org/a?b=1&c=ü for more.",
        "Write to anna.meier@example.org today.",
        "<b>Bold</b> and {name} and %s",
        "A 漢字 and a 🚆 and ₿.",
        "Dvořák und Łódź",
        "⟦url1⟧ is text here",
        "a_b",
    ],
)
def test_what_cannot_be_translated_survives(translator, copying, line):
    assert texts(translator.translate([line])) == [line]


def test_a_sentence_that_is_too_long_is_translated_in_parts_and_nothing_of_it_is_lost(trained_run, copying):
    translator = Translator(trained_run, device="cpu")
    line = ("zyx, " * 999 + "wvu. ") * 2 + "x" * 3_000
    (best,) = translator.translate([line])
    assert best[0].text.replace(" ", "") == line.replace(" ", "")
    assert translator.num_cut == 1


def test_progress_counts_every_sentence_that_is_not_blank(translator, copying):
    done = []
    translator.translate(LINES, on_progress=done.append, batch_tokens=40)
    assert sum(done) == 4
    assert len(done) > 1


@pytest.mark.parametrize("device", ["banana", "cuda:99"])
def test_a_device_that_is_not_there_is_the_users_to_mend(trained_run, device):
    with pytest.raises(DragomanError, match=device):
        Translator(trained_run, device=device)


def test_damaged_weights_are_the_users_to_mend(trained_run, tmp_path):
    shutil.copytree(trained_run / "checkpoints/last", tmp_path / "copy")
    (tmp_path / "copy/weights.safetensors").write_bytes(b"not weights")
    with pytest.raises(DragomanError, match=r"weights\.safetensors cannot be read"):
        Translator(tmp_path / "copy")
