"""Validation against a direct computation, one sentence at a time."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dragoman.data.batches import BatchPlan, batch_of
from dragoman.data.shards import EvalSet, open_shards, write_eval_set
from dragoman.data.vocab import EOS_ID, Vocab
from dragoman.dist.world import World
from dragoman.model.transformer import Transformer, initialize
from dragoman.train import validate
from dragoman.train.tensors import BatchTensors
from dragoman.train.validate import Validator
from small_runs import tiny_recipe

CPU = torch.device("cpu")


def make_validator(data_folder, *settings: str) -> tuple[Validator, Transformer]:
    recipe = tiny_recipe(*settings)
    data = open_shards(data_folder)
    plan = BatchPlan(data.shards, recipe.batch, 1)
    vocab = Vocab.load(data.vocab_path)
    model = Transformer(recipe.model, vocab.size)
    initialize(model, 1)
    return Validator(data, plan, vocab, recipe, World(0, 1, 0, CPU)), model.double()


@torch.inference_mode()
def direct_nll(model: Transformer, vocab: Vocab, source: str, target: str) -> tuple[float, int]:
    ids = [np.array([*vocab.encode([line])[0], EOS_ID]) for line in (source, target)]
    piece = BatchTensors.of(batch_of(ids[:1], ids[1:]), CPU)
    model.eval()
    hidden = model(piece.source_ids, piece.source, piece.input_ids, piece.target)
    log_p = (hidden @ model.embedding.weight.T).log_softmax(-1)
    return -float(log_p.gather(1, piece.labels[:, None]).sum()), len(piece.labels)


def test_the_loss_is_that_of_a_direct_computation(phrasebook_data):
    validator, model = make_validator(phrasebook_data)
    (result,) = validator.run(model, nullcontext(), step=7, attempt=2)
    dev_set = open_shards(phrasebook_data).dev_sets[0]
    direct = [direct_nll(model, validator.vocab, *pair) for pair in zip(*dev_set.lines(), strict=True)]
    assert [sentence.nll_sum for sentence in result.sentences] == pytest.approx([nll for nll, _ in direct], rel=1e-9)
    assert [sentence.target_tokens for sentence in result.sentences] == [tokens for _, tokens in direct]
    record = result.record
    assert record.loss == pytest.approx(sum(nll for nll, _ in direct) / sum(tokens for _, tokens in direct), rel=1e-9)
    assert (record.step, record.attempt, record.dev_set) == (7, 2, "dev")
    assert (record.num_sentences, record.num_decoded) == (40, 20)


def test_batching_does_not_change_the_loss(phrasebook_data, monkeypatch):
    validator, model = make_validator(phrasebook_data, "evaluate.decode=false")
    whole = validator.run(model, nullcontext(), 1, 1)[0].record.loss
    monkeypatch.setattr(validate, "EVALUATION_TOKENS", 60)
    assert validator.run(model, nullcontext(), 1, 1)[0].record.loss == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("num_batches", [0, 1, 5])
def test_who_is_told_to_leave_does_not_finish_an_evaluation(phrasebook_data, monkeypatch, num_batches):
    validator, model = make_validator(phrasebook_data)
    monkeypatch.setattr(validate, "EVALUATION_TOKENS", 100)
    asked = []
    validator._is_leaving = lambda: asked.append(1) or len(asked) > num_batches
    assert validator.run(model, nullcontext(), 1, 1) == []
    assert len(asked) == num_batches + 2  # once more by the batches, once by what is gathered
    assert model.training


def test_all_ranks_leave_out_what_one_did_not_finish(phrasebook_data, monkeypatch):
    validator, model = make_validator(phrasebook_data, "evaluate.decode=false")

    class Other(World):
        def gather(self, value):
            return [value, [[], True]]

    validator.world = Other(0, 1, 0, CPU)
    assert validator.run(model, nullcontext(), 1, 1) == []


def test_ranks_together_cover_every_sentence(phrasebook_data, monkeypatch):
    """Two ranks by hand: what rank 0 would gather is what both computed."""
    validator, model = make_validator(phrasebook_data, "evaluate.decode=false")
    alone = validator.run(model, nullcontext(), 1, 1)[0].sentences
    monkeypatch.setattr(validate, "EVALUATION_TOKENS", 100)
    shares: list[list] = []

    class Half(World):
        def gather(self, value):
            shares.append(value)
            return [value]

    for rank in range(2):
        validator.world = Half(rank, 2, rank, CPU)
        dev_set = validator.dev_sets[0]
        with torch.inference_mode():
            validator._sentence_nll(model.eval(), dev_set.source_ids, dev_set.target_ids)
    assert len(shares[0][0]) > 0 < len(shares[1][0])
    merged = sorted(pair for share, _ in shares for pair in share)
    assert [index for index, _ in merged] == list(range(40))
    assert [nll for _, nll in merged] == pytest.approx([sentence.nll_sum for sentence in alone], rel=1e-9)


def test_training_pairs_are_measured_alike(phrasebook_data):
    validator, model = make_validator(phrasebook_data, "evaluate.decode=false")
    record = validator.run(model, nullcontext(), 1, 1)[0].record
    sources, targets = validator.train_pairs
    assert len(sources) == 50
    model.eval()
    piece = BatchTensors.of(batch_of(sources, targets), CPU)
    with torch.inference_mode():
        hidden = model(piece.source_ids, piece.source, piece.input_ids, piece.target)
        expected = torch.nn.functional.cross_entropy(hidden @ model.embedding.weight.T, piece.labels)
    assert record.train_loss == pytest.approx(expected.item(), rel=1e-9)
    without, model = make_validator(phrasebook_data, "evaluate.decode=false", "evaluate.train_pairs=0")
    assert without.run(model, nullcontext(), 1, 1)[0].record.train_loss is None


def test_dropout_is_off_during_and_on_after(phrasebook_data):
    validator, model = make_validator(phrasebook_data, "evaluate.decode=false")
    model.train()
    losses = {validator.run(model, nullcontext(), 1, 1)[0].record.loss for _ in range(2)}
    assert len(losses) == 1
    assert model.training


def test_every_dev_set_is_judged_and_the_first_one_translated(phrasebook_data, tmp_path):
    validator, model = make_validator(phrasebook_data)
    info = write_eval_set(tmp_path, "talks", ["The dog sleeps.", "A cat."], ["Der Hund schläft.", "Eine Katze."])
    talks = EvalSet("talks", tmp_path / "talks.source.txt", tmp_path / "talks.target.txt", info.num_pairs)
    validator.dev_sets.append(validate._encode(talks, validator.vocab, 1_024))
    first, second = validator.run(model, nullcontext(), 1, 1)
    assert [first.record.dev_set, second.record.dev_set] == ["dev", "talks"]
    direct = [direct_nll(model, validator.vocab, *pair) for pair in zip(*talks.lines(), strict=True)]
    assert second.record.loss == pytest.approx(sum(n for n, _ in direct) / sum(t for _, t in direct), rel=1e-9)
    assert first.record.bleu is not None
    assert "nrefs:1" in first.record.bleu_signature
    assert (second.record.bleu, second.record.train_loss, second.record.num_decoded) == (None, None, 0)
    assert [sentence.hypothesis is None for sentence in first.sentences] == [False] * 20 + [True] * 20
    assert all(sentence.hypothesis is None for sentence in second.sentences)


def test_hypotheses_keep_the_order_of_the_dev_set(phrasebook_data, monkeypatch):
    """A search that copies the source: every sentence must come back at its own place."""
    validator, model = make_validator(phrasebook_data)
    monkeypatch.setattr(validate, "EVALUATION_TOKENS", 40)

    def copying(_model, sources, _eos, _options):
        return [[SimpleNamespace(ids=source[:-1])] for source in sources]

    monkeypatch.setattr(validate, "search", copying)
    (result,) = validator.run(model, nullcontext(), 1, 1)
    for sentence in result.sentences[:20]:
        assert sentence.hypothesis == sentence.source


def test_a_sentence_beyond_the_position_table_is_cut_and_not_an_error(phrasebook_data):
    validator, model = make_validator(phrasebook_data, "model.max_positions=61")
    lines = ["word " * 300, "A dog."]
    encoded = validate._encode(SimpleNamespace(name="long", lines=lambda: (lines, lines)), validator.vocab, 61)
    assert len(encoded.source_ids[0]) == 61
    assert encoded.target_ids[0][-1] == EOS_ID
    validator.dev_sets = [encoded]
    (result,) = validator.run(model, nullcontext(), 1, 1)
    assert np.isfinite(result.record.loss)
