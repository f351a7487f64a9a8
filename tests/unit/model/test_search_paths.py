"""Which search a model gets: through fused kernels where they run, through torch's own operations elsewhere."""

import gc

import pytest
import torch

from dragoman.data.vocab import EOS_ID
from dragoman.model import search as module
from dragoman.model.found import Found
from dragoman.model.search import SearchOptions, is_fused, release, search, sentences_at_once
from lively_models import SOURCES, lively_model


class StandIn:
    """Finds one word for every sentence but those of two pieces: for these it finds nothing."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.seen: list[int] = []

    def search(self, model, sources, eos_id, options):
        self.seen.append(len(sources))
        return [[Found([7], -1.0)] if len(source) != 2 else [] for source in sources]


@pytest.fixture
def kernels_run(monkeypatch):
    monkeypatch.setattr(module, "fused_obstacle", lambda *_: None)


def test_the_cpu_has_its_own_search():
    model = lively_model()
    assert not is_fused(model, SearchOptions())
    assert sentences_at_once(model, SearchOptions()) is None


def test_kernels_are_left_where_they_are_not_wanted_or_cannot_do_it(kernels_run):
    model = lively_model()
    assert is_fused(model, SearchOptions())
    assert sentences_at_once(model, SearchOptions(beam=4)) == 512
    assert sentences_at_once(model, SearchOptions(beam=1)) == 2_048
    assert not is_fused(model, SearchOptions(kernels="torch"))
    assert not is_fused(model, SearchOptions(beam=33))
    assert not is_fused(model.double(), SearchOptions())


def test_a_sentence_that_kernels_lost_is_searched_again(kernels_run, monkeypatch):
    model = lively_model()
    stand_in = StandIn()
    monkeypatch.setitem(module._decoders, model, stand_in)
    options = SearchOptions(2, 1.0, 5)
    found = search(model, SOURCES, EOS_ID, options)
    assert stand_in.seen == [len(SOURCES)]
    lost = [i for i, source in enumerate(SOURCES) if len(source) == 2]
    assert lost
    for i, best in enumerate(found):
        if i in lost:
            assert best == search(model, [SOURCES[i]], EOS_ID, SearchOptions(2, 1.0, 5, kernels="torch"))[0]
        else:
            assert best == [Found([7], -1.0)]


def test_what_is_kept_for_a_model_goes_when_told_to_and_with_the_model():
    model, other = lively_model(), lively_model()
    module._decoders[model], module._decoders[other] = StandIn(), StandIn()
    release(model)
    release(model)  # nothing is there: nothing happens
    assert model not in module._decoders
    num_kept = len(module._decoders)
    del other
    gc.collect()
    assert len(module._decoders) == num_kept - 1
