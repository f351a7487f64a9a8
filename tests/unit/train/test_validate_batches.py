"""How a dev set is dealt to ranks whose searches count sentences."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from test_validate import make_validator

from dragoman.train import validate
from dragoman.train.validate import _share


@pytest.mark.parametrize(
    ("num_sentences", "most", "num_ranks", "sizes"),
    [
        (10, 512, 1, [10]),
        (1_000, 512, 1, [500, 500]),
        (1_000, 512, 4, [250] * 4),
        (1_100, 512, 2, [550 // 2] * 4),
        (5, 512, 8, [1] * 5),
        (0, 512, 2, []),
    ],
)
def test_every_rank_gets_as_many_batches_of_neighbours(num_sentences, most, num_ranks, sizes):
    order = list(range(num_sentences))[::-1]
    batches = _share(order, most, num_ranks)
    assert [len(batch) for batch in batches] == sizes
    assert [index for batch in batches for index in batch] == order


def test_searches_that_count_sentences_get_them_so_and_give_their_memory_back(phrasebook_data, monkeypatch):
    validator, model = make_validator(phrasebook_data)
    seen: list[tuple[int, int, str]] = []
    released = []

    def copying(_model, sources, _eos, options):
        assert not released
        seen.append((len(sources), options.max_length, options.kernels))
        return [[SimpleNamespace(ids=source[:-1])] for source in sources]

    monkeypatch.setattr(validate, "search", copying)
    monkeypatch.setattr(validate, "sentences_at_once", lambda *_: 8)
    monkeypatch.setattr(validate, "release", released.append)
    (result,) = validator.run(model, nullcontext(), 1, 1)
    assert [number for number, _, _ in seen] == [7, 7, 6]
    assert [limit for _, limit, _ in seen] == sorted({limit for _, limit, _ in seen}, reverse=True)
    assert {kernels for _, _, kernels in seen} == {"auto"}
    assert released == [model]
    for sentence in result.sentences[:20]:
        assert sentence.hypothesis == sentence.source


def test_a_recipe_without_kernels_decodes_without_them(phrasebook_data, monkeypatch):
    validator, model = make_validator(phrasebook_data, "train.kernels=torch")
    seen: list[str] = []

    def copying(_model, sources, _eos, options):
        seen.append(options.kernels)
        return [[SimpleNamespace(ids=source[:-1])] for source in sources]

    monkeypatch.setattr(validate, "search", copying)
    validator.run(model, nullcontext(), 1, 1)
    assert set(seen) == {"torch"}
