"""The state of a search on a GPU, driven here by torch's own decoder: it finds what the search of the CPU finds."""

import numpy as np
import pytest
import torch

from dragoman.data.vocab import EOS_ID
from dragoman.model import search as search_module
from dragoman.model.found import SearchOptions
from dragoman.model.fused.decoding.beam import Beams
from dragoman.model.fused.decoding.log import CLOSES, ENDING, FIELDS, ORIGIN, PARENT, SCORE, WORD, read_log
from dragoman.model.incremental import IncrementalDecoder
from dragoman.model.layout import Layout
from dragoman.model.search import search
from lively_models import SOURCES, lively_model

CPU = torch.device("cpu")


@torch.inference_mode()
def search_with_beams(model, sources, options, room=7):
    """As a GPU would do it: every row of every sentence at every step, until all are done."""
    ids = torch.tensor([piece for source in sources for piece in source])
    # Sentences that there is room for, but none of: copies of the first one, which nobody may notice.
    lengths = [len(source) for source in sources]
    spare = room - len(sources)
    decoder = IncrementalDecoder(
        model,
        torch.cat([ids, *[torch.tensor(sources[0])] * spare]),
        Layout(np.array(lengths + lengths[:1] * spare), CPU),
    )
    beams = Beams(room, options.beam, 64, CPU)
    beams.start(len(sources), EOS_ID, options.max_length, options)
    num_steps = 0
    while num_steps < options.max_length and not beams.is_done():
        logits = decoder.logits(beams.words_N.long())
        if num_steps == 0:
            logits[:, EOS_ID] = -torch.inf
        top, words = logits.log_softmax(-1).topk(min(2 * options.beam, logits.shape[1]), dim=-1)
        decoder.follow(beams.advance(top, words.int()), None)
        num_steps += 1
    return read_log(beams.log(num_steps), len(sources), EOS_ID, options), num_steps


def assert_same(found, expected):
    assert [[each.ids for each in best] for best in found] == [[each.ids for each in best] for best in expected]
    for best, other in zip(found, expected, strict=True):
        assert [each.score for each in best] == pytest.approx([each.score for each in other], rel=1e-5)


@pytest.fixture
def calls(monkeypatch) -> list[int]:
    """One entry for every step of the search of the CPU."""
    seen: list[int] = []

    class Counting(IncrementalDecoder):
        def logits(self, ids_N):
            seen.append(len(ids_N))
            return super().logits(ids_N)

    monkeypatch.setattr(search_module, "IncrementalDecoder", Counting)
    return seen


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize(("beam", "num_best"), [(1, 1), (2, 2), (4, 1), (4, 4), (5, 3)])
def test_translations_and_scores_are_those_of_the_search_of_the_cpu(norm, beam, num_best, length_penalty, calls):
    model = lively_model(norm)
    options = SearchOptions(beam, length_penalty, 14, num_best)
    expected = search(model, SOURCES, EOS_ID, options)
    assert len({len(best[0].ids) for best in expected}) > 1
    found, num_steps = search_with_beams(model, SOURCES, options)
    assert_same(found, expected)
    assert num_steps == len(calls)


def test_without_a_length_penalty_it_stops_as_early_as_the_search_of_the_cpu(calls):
    """Sentence by sentence: among several the slowest hides when the others are done."""
    model = lively_model()
    for beam, num_best in ((2, 1), (4, 1), (4, 2), (4, 3)):
        for source in SOURCES:
            calls.clear()
            options = SearchOptions(beam, 0.0, 30, num_best)
            expected = search(model, [source], EOS_ID, options)
            found, num_steps = search_with_beams(model, [source], options, room=2)
            assert_same(found, expected)
            assert num_steps == len(calls)


@pytest.mark.parametrize("vocab_size", [5, 7])
@pytest.mark.parametrize("beam", [4, 6])
def test_a_vocabulary_smaller_than_the_candidates(vocab_size, beam):
    sources = [[4, 3, EOS_ID], [3, EOS_ID]]
    for seed in range(4):
        model = lively_model(vocab_size=vocab_size, seed=seed)
        options = SearchOptions(beam, 1.0, 6, beam)
        assert_same(search_with_beams(model, sources, options)[0], search(model, sources, EOS_ID, options))


@pytest.mark.parametrize("max_length", [1, 2, 3])
def test_a_limit_ends_everything(max_length):
    model = lively_model()
    options = SearchOptions(4, 1.0, max_length, 4)
    found, num_steps = search_with_beams(model, SOURCES, options)
    assert num_steps == max_length
    assert_same(found, search(model, SOURCES, EOS_ID, options))


def test_it_stops_when_the_last_sentence_is_done_and_looks_at_no_spare_one():
    model = lively_model()
    options = SearchOptions(2, 1.0, 40)
    found, num_steps = search_with_beams(model, SOURCES[2:4], options)
    longest = max(len(best[0].ids) for best in found)
    assert longest <= num_steps < 40
    assert_same(found, search(model, SOURCES[2:4], EOS_ID, options))


def test_every_row_finds_its_past_in_the_slots():
    """Random scores: beams cross at every step. What a row finds must be what its forebears put there."""
    random = torch.Generator().manual_seed(1)
    beams = Beams(3, 4, 20, CPU)
    beams.start(3, EOS_ID, 20, SearchOptions(4))
    stored: dict[int, int] = {}
    histories = [[] for _ in range(12)]
    crossed = 0
    for step in range(12):
        for row in range(12):
            stored[step * 12 + row] = int(beams.words_N[row])
            histories[row] = [*histories[row], stored[step * 12 + row]]
        words = torch.stack([torch.randperm(30, generator=random)[:8] + 3 for _ in range(12)])
        top = torch.randn(12, 8, generator=random).sort(descending=True).values
        rows = beams.advance(top, words.int()).tolist()
        histories = [histories[row] for row in rows]
        crossed += rows != list(range(12))
        found = [[stored[slot] for slot in beams.slots_PN[: step + 1, row].tolist()] for row in range(12)]
        assert found == histories
    assert crossed == 12


def log_of(steps) -> np.ndarray:
    """One sentence, two beams; a step is two rows of fields."""
    log = np.zeros((len(steps), len(FIELDS), 1, 2), dtype=np.int32)
    for number, rows in enumerate(steps):
        for beam, fields in enumerate(rows):
            for name, value in fields.items():
                log[number, name, 0, beam] = np.float32(value).view(np.int32) if name == SCORE else value
    return log


def test_the_log_is_read_back_along_the_parents():
    log = log_of(
        [
            [{PARENT: 0, WORD: 10}, {PARENT: 0, WORD: 11}],
            [
                {PARENT: 1, WORD: 20, CLOSES: 1, ORIGIN: 1, ENDING: EOS_ID, SCORE: -3.0},
                {PARENT: 0, WORD: 21},
            ],
            [
                {CLOSES: 1, ORIGIN: 0, ENDING: 30, SCORE: -6.0},
                {CLOSES: 1, ORIGIN: 1, ENDING: EOS_ID, SCORE: -3.0},
            ],
        ]
    )
    (found,) = read_log(log, 1, EOS_ID, SearchOptions(2, 1.0, 3, 3))
    assert [(each.ids, each.score) for each in found] == [([10, 21], -1.0), ([11], -1.5), ([11, 20, 30], -2.0)]
    (found,) = read_log(log, 1, EOS_ID, SearchOptions(2, 0.0, 3, 2))  # of equals the one that was there first
    assert [(each.ids, each.score) for each in found] == [([11], -3.0), ([10, 21], -3.0)]
    assert read_log(np.zeros((3, len(FIELDS), 2, 2), dtype=np.int32), 2, EOS_ID, SearchOptions(2)) == [[], []]
