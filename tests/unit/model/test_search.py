"""Search: the cached decoder against the whole one, beam search against exhaustive search and CTranslate2."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.config import ModelConfig, VocabConfig
from dragoman.data.vocab import EOS_ID, Vocab, learn_vocab
from dragoman.model.incremental import IncrementalDecoder
from dragoman.model.layout import Layout
from dragoman.model.search import SearchOptions, search
from dragoman.model.transformer import Transformer, initialize
from lively_models import lively_model

CPU = torch.device("cpu")
SOURCES = [[5, 9, 4, EOS_ID], [7, EOS_ID], [6, 6, 8, 9, 4, 5, 7, EOS_ID]]


def small_model(norm: str = "pre", vocab_size: int = 12, sharpness: float = 3.0) -> Transformer:
    config = ModelConfig(
        d_model=16, num_heads=2, d_ffn=32, num_encoder_layers=1, num_decoder_layers=2, max_positions=64, norm=norm
    )
    model = Transformer(config, vocab_size)
    initialize(model, seed=4)
    with torch.no_grad():
        model.embedding.weight.mul_(sharpness)  # sharper distributions end sooner and tie less
    return model.eval()


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.inference_mode()
def test_cached_decoding_equals_the_whole_decoder(norm):
    model = small_model(norm).double()
    ids = torch.tensor([piece for source in SOURCES for piece in source])
    source = Layout(np.array([len(s) for s in SOURCES]), CPU)
    inputs = torch.randint(0, 12, (3, 40), generator=torch.Generator().manual_seed(2))  # over one growth of the cache
    target = Layout(np.array([40, 40, 40]), CPU)
    whole = model(ids, source, inputs.flatten(), target) @ model.embedding.weight.T
    decoder = IncrementalDecoder(model, ids, source)
    steps = torch.stack([decoder.logits(inputs[:, position]) for position in range(40)], dim=1)
    assert torch.allclose(whole, steps.flatten(0, 1), atol=1e-10)


def log_probability(model: Transformer, source: list[int], words: tuple[int, ...], ends: bool) -> float:
    labels = [*words, EOS_ID] if ends else list(words)
    inputs = torch.tensor([EOS_ID, *labels[:-1]])
    hidden = model(
        torch.tensor(source), Layout(np.array([len(source)]), CPU), inputs, Layout(np.array([len(labels)]), CPU)
    )
    log_p = (hidden @ model.embedding.weight.T).log_softmax(-1)
    return float(log_p[range(len(labels)), labels].sum())


@torch.inference_mode()
def test_a_wide_beam_finds_the_best_of_all_translations():
    model = small_model(vocab_size=7).double()
    source, max_length = [5, 4, 6, EOS_ID], 3
    words = [word for word in range(7) if word != EOS_ID]
    scored = [
        (log_probability(model, source, sequence, ends=length < max_length), list(sequence))
        for length in range(1, max_length + 1)
        for sequence in itertools.product(words, repeat=length)
    ]
    found = search(model, [source], EOS_ID, SearchOptions(beam=300, max_length=max_length, num_best=3))[0]
    # The first word is drawn without EOS, which the search forbids there: undo that for all alike.
    first = log_probability(model, source, (EOS_ID,), ends=False)
    lengths = {length: min(length + 1, max_length) for length in range(1, max_length + 1)}  # EOS counts
    ranked = sorted(
        (((score - math.log1p(-math.exp(first))) / lengths[len(ids)], ids) for score, ids in scored), reverse=True
    )
    assert [each.ids for each in found] == [ids for _, ids in ranked[:3]]
    assert [each.score for each in found] == pytest.approx([score for score, _ in ranked[:3]], abs=1e-5)


def test_batching_does_not_change_a_translation():
    model = small_model()
    options = SearchOptions(beam=3, max_length=20, num_best=3)
    together = search(model, SOURCES, EOS_ID, options)
    alone = [search(model, [source], EOS_ID, options)[0] for source in SOURCES]
    assert [[each.ids for each in best] for best in together] == [[each.ids for each in best] for best in alone]


def test_greedy_is_the_most_likely_word_every_time():
    model = small_model()
    found = search(model, SOURCES[:1], EOS_ID, SearchOptions(beam=1, max_length=8))[0][0]
    words: tuple[int, ...] = ()
    with torch.inference_mode():
        while len(words) < 8:
            allowed = [word for word in range(12) if words or word != EOS_ID]
            best = max(allowed, key=lambda word: log_probability(model, SOURCES[0], (*words, word), ends=False))
            if best == EOS_ID:
                break
            words = (*words, best)
    assert found.ids == list(words)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(("beam", "length_penalty"), [(1, 1.0), (4, 1.0), (4, 0.6), (4, 0.0)])
def test_scores_and_translations_equal_ctranslate2(tmp_path: Path, norm, beam, length_penalty):
    ctranslate2 = pytest.importorskip("ctranslate2")
    from dragoman.translate.export.ctranslate2 import to_ctranslate2

    text = [f"the number {i} and the word {chr(97 + i % 26)}{chr(97 + i * 7 % 26)}" for i in range(400)]
    path = tmp_path / "vocab.model"
    path.write_bytes(learn_vocab(text, VocabConfig(size=400)))
    vocab = Vocab.load(path)
    model = lively_model(norm, vocab.size, seed={"pre": 3, "post": 2}[norm])
    with torch.no_grad():
        model.embedding.weight[EOS_ID] *= {"pre": 3, "post": 5}[norm]  # so that some translations end
    to_ctranslate2(model, vocab, tmp_path / "ct2")
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), inter_threads=1, intra_threads=1)
    lines = text[:12]
    theirs = translator.translate_batch(
        [[vocab.pieces[i] for i in ids] for ids in vocab.encode(lines)],
        beam_size=beam, length_penalty=length_penalty, max_decoding_length=30, return_scores=True,
        num_hypotheses=min(2, beam),
    )  # fmt: skip
    options = SearchOptions(beam, length_penalty, 30, min(2, beam))
    ours = search(model, [[*ids, EOS_ID] for ids in vocab.encode(lines)], EOS_ID, options)
    for mine, other in zip(ours, theirs, strict=True):
        assert [[vocab.pieces[i] for i in each.ids] for each in mine] == other.hypotheses
        assert [each.score for each in mine] == pytest.approx(other.scores, rel=3e-4)
    assert any(len(each.ids) < 30 for mine in ours for each in mine)
