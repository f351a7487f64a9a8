"""How many sentences a search gets at once: by tokens on the CPU, by their number where that is what counts."""

from types import SimpleNamespace

import pytest

from dragoman.translate import engine_torch as module
from dragoman.translate.engine import BATCH_TOKENS
from dragoman.translate.translator import Translator

LINES = [f"{'word ' * (i * 7 % 11)}number {i}" for i in range(23)]


@pytest.fixture
def batches(monkeypatch) -> list[list[int]]:
    """Lengths of the sentences of every batch; a translation is its source."""
    seen: list[list[int]] = []

    def search(_model, sources, _eos, _options, _prefixes=None):
        seen.append([len(source) for source in sources])
        return [[SimpleNamespace(ids=source[:-1], score=0.0)] for source in sources]

    monkeypatch.setattr(module, "search", search)
    return seen


def test_batches_are_by_number_where_the_search_says_so(trained_run, batches, monkeypatch):
    translator = Translator(trained_run, device="cpu")
    monkeypatch.setattr(module, "sentences_at_once", lambda *_: 10)
    assert [best[0].text for best in translator.translate(LINES)] == LINES
    assert [len(batch) for batch in batches] == [10, 10, 3]
    lengths = [length for batch in batches for length in batch]
    assert lengths == sorted(lengths, reverse=True)


def test_who_asks_for_tokens_gets_them(trained_run, batches, monkeypatch):
    translator = Translator(trained_run, device="cpu")
    monkeypatch.setattr(module, "sentences_at_once", lambda *_: 10)
    translator.translate(LINES, beam=1, batch_tokens=60)
    assert len(batches) > 3
    assert all(len(batch) * max(batch) <= 60 for batch in batches)


def test_the_cpu_counts_tokens_as_ever(trained_run, batches):
    translator = Translator(trained_run, device="cpu")
    translator.translate(LINES)
    translator.translate(LINES, batch_tokens=BATCH_TOKENS)
    assert batches[: len(batches) // 2] == batches[len(batches) // 2 :]
