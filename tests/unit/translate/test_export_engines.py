"""Exports against the run that they were made from: searches, scores, prefixes, attention."""

import sys

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.data.vocab import Vocab
from dragoman.errors import DragomanError
from dragoman.model.found import Sampling, SearchOptions
from dragoman.model.transformer import Transformer, initialize
from dragoman.translate.engine import open_engine
from dragoman.translate.export.ctranslate2 import to_ctranslate2
from dragoman.translate.translator import Translator
from exports import export_here

LINES = ["The old baker gave his neighbour a warm cake.", "The dog sleeps.", "We have not found the keys."]
FORMATS = ["ctranslate2", "huggingface"]


@pytest.fixture(scope="module")
def engines(trained_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    found = {"torch": open_engine(trained_run, "cpu")}
    for format in FORMATS:
        export_here(trained_run, folder / format, format, quantization="float32")
        found[format] = open_engine(folder / format, "cpu")
    return found


def encoded(engine) -> list[list[int]]:
    return [engine.vocab.encode_source(line)[0] for line in LINES]


def ids_of(found) -> list[list[list[int]]]:
    return [[each.ids for each in best] for best in found]


def scores_of(found) -> list[float]:
    return [each.score for best in found for each in best]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("beam", "length_penalty", "num_best"), [(1, 1.0, 1), (4, 1.0, 3), (4, 0.6, 1), (3, 1.4, 3)])
def test_searches_find_the_same(engines, format, beam, length_penalty, num_best):
    options = SearchOptions(beam, length_penalty, 25, num_best)
    sources = encoded(engines["torch"])
    mine, theirs = (engines[name].search(sources, options) for name in ("torch", format))
    assert ids_of(theirs) == ids_of(mine)
    assert scores_of(theirs) == pytest.approx(scores_of(mine), abs=1e-4)


@pytest.mark.parametrize("format", FORMATS)
def test_forced_decoding_gives_the_same_scores(engines, format):
    sources = encoded(engines["torch"])
    targets = engines["torch"].vocab.encode(["Der alte Bäcker.", "Ja", "Wir haben die Schlüssel nicht gefunden."])
    mine = engines["torch"].score(sources, targets)
    assert engines[format].score(sources, targets) == pytest.approx(mine, abs=1e-4)
    assert min(mine) < -5


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("beam", [1, 3])
def test_prefixes_are_kept_and_cost_nothing(engines, format, beam):
    sources = encoded(engines["torch"])
    prefixes = [*engines["torch"].vocab.encode(["Der alte", "Die"]), []]
    options = SearchOptions(beam, 1.0, 15, 1)
    mine, theirs = (engines[name].search(sources, options, prefixes) for name in ("torch", format))
    for prefix, best in zip(prefixes, theirs, strict=True):
        assert best[0].ids[: len(prefix)] == prefix
    assert ids_of(theirs) == ids_of(mine)
    if format == "huggingface":
        assert scores_of(theirs) == pytest.approx(scores_of(mine), abs=1e-4)


def test_attention_of_ctranslate2_is_ours(engines):
    options = SearchOptions(2, 1.0, 20, 2, attention=True)
    sources = encoded(engines["torch"])
    mine, theirs = (engines[name].search(sources, options) for name in ("torch", "ctranslate2"))
    assert ids_of(theirs) == ids_of(mine)
    for one, other in zip((e for b in mine for e in b), (e for b in theirs for e in b), strict=True):
        assert torch.allclose(torch.tensor(one.attention), torch.tensor(other.attention), atol=1e-4)


@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_the_layer_of_the_attention_is_ours_however_many_there_are(num_layers, engines, tmp_path, monkeypatch):
    """Layers whose attention differs clearly: a wrong one would be seen."""
    mine, theirs = engines["torch"], engines["ctranslate2"]
    config = ModelConfig(
        d_model=32, num_heads=4, d_ffn=64, num_encoder_layers=1, num_decoder_layers=num_layers, max_positions=64
    )
    model = Transformer(config, mine.vocab.size)
    initialize(model, seed=4)
    with torch.no_grad():
        for number, layer in enumerate(model.decoder):
            layer.cross_attention.sublayer.q.weight.mul_(3.0 + 2.0 * number)
    to_ctranslate2(model, mine.vocab, tmp_path)
    monkeypatch.setattr(mine, "model", model.eval())
    monkeypatch.setattr(theirs, "translator", type(theirs.translator)(str(tmp_path)))
    options = SearchOptions(1, 1.0, 6, 1, attention=True)
    one, other = (engine.search(encoded(mine), options) for engine in (mine, theirs))
    assert ids_of(one) == ids_of(other)
    for a, b in zip(one, other, strict=True):
        assert torch.allclose(torch.tensor(a[0].attention), torch.tensor(b[0].attention), atol=1e-4)


def test_quantizing_leaves_the_model_as_it_is(engines, tmp_path):
    model = engines["torch"].model
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for quantization in ("int8", "float16"):
        to_ctranslate2(model, Vocab.load(engines["torch"].vocab.path), tmp_path / quantization, quantization)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_hugging_face_tells_no_attention(engines):
    with pytest.raises(DragomanError, match="where words came from"):
        engines["huggingface"].search([[20]], SearchOptions(attention=True))


def test_drawn_translations_depend_on_the_seed_alone(engines):
    engine = engines["huggingface"]
    state = torch.random.get_rng_state()
    drawn = [
        ids_of(engine.search(encoded(engine), SearchOptions(1, 1.0, 10, 3, sampling=Sampling(20, 1.5, seed))))
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [len(best) for best in drawn[0]] == [3, 3, 3]
    cold = engine.search(encoded(engine), SearchOptions(1, 1.0, 10, 1, sampling=Sampling(1)))
    assert ids_of(cold) == ids_of(engine.search(encoded(engine), SearchOptions(1, 1.0, 10, 1)))


@pytest.mark.parametrize("format", FORMATS)
def test_a_translator_takes_an_export(engines, format):
    translated = Translator(engines[format].path, device="cpu").translate([*LINES, ""], max_length=12)
    expected = Translator(engines["torch"].path, device="cpu").translate([*LINES, ""], max_length=12)
    assert [best[0].text for best in translated] == [best[0].text for best in expected]


@pytest.mark.parametrize(("format", "library"), [("ctranslate2", "ctranslate2"), ("huggingface", "transformers")])
def test_a_missing_library_is_named(engines, monkeypatch, format, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(DragomanError, match=f"needs the package {library}") as error:
        open_engine(engines[format].path)
    assert error.value.hint == f"pip install {library}"
