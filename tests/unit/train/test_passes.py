"""Passes through torch against a direct computation; the shapes that a GPU gets."""

import numpy as np
import pytest
import torch

from dragoman.config import BatchConfig
from dragoman.data.batches import Batch, BatchPlan
from dragoman.data.shards import open_shards
from dragoman.model.fused.words import Sentences, pack, pack_all, places_of
from dragoman.model.loss import linear_cross_entropy
from dragoman.train.build import build_model
from dragoman.train.passes import TorchPasses, make_passes
from dragoman.train.slots import usual_slots
from dragoman.train.tensors import BatchTensors
from small_runs import tiny_recipe
from synthetic_shards import shard_of, wmt_lengths

CPU = torch.device("cpu")


def sentences_of(batch: Batch) -> Sentences:
    return Sentences(batch.source_ids, batch.source_lengths, batch.input_ids, batch.target_ids, batch.target_lengths)


def test_a_pass_gives_the_sums_and_its_part_of_the_mean_gradient(phrasebook_data):
    recipe = tiny_recipe("model.dropout=0.0", "model.ffn_dropout=0.0", "train.precision=fp64")
    data = open_shards(phrasebook_data)
    built = build_model(recipe, data.manifest.vocab.size, CPU)
    plan = BatchPlan(data.shards, recipe.batch, 1)
    passes = make_passes(built, recipe, plan)
    assert isinstance(passes, TorchPasses)
    step = plan.step(1)
    batches = [plan.batch(step, number) for number in range(recipe.batch.num_microbatches)]
    sums = torch.zeros(2, dtype=torch.float64)
    for index, batch in enumerate(batches):
        sums += passes.forward(passes.piece(batch, index), 1, step.target_tokens)
        passes.backward()
    gathered = built.flat.gradient.clone()
    built.flat.zero()
    losses = []
    for batch in batches:
        whole = BatchTensors.of(batch, CPU)
        hidden = built.model(whole.source_ids, whole.source, whole.input_ids, whole.target)
        losses.append(linear_cross_entropy(hidden, built.model.embedding.weight, whole.labels, 0.1))
    sum(each.loss for each in losses).div(step.target_tokens).backward()
    assert sums.tolist() == pytest.approx([float(sum(part).detach()) for part in zip(*losses, strict=True)])
    assert torch.allclose(gathered, built.flat.gradient)


def test_the_same_seed_drops_the_same(phrasebook_data):
    recipe = tiny_recipe()
    data = open_shards(phrasebook_data)
    built = build_model(recipe, data.manifest.vocab.size, CPU)
    plan = BatchPlan(data.shards, recipe.batch, 1)
    passes = make_passes(built, recipe, plan)
    piece = passes.piece(plan.batch(plan.step(1), 0), 0)
    first, again, other = (passes.forward(piece, seed, 100).tolist() for seed in (5, 5, 6))
    assert first == again != other


@pytest.mark.parametrize("num_microbatches", [1, 8])
def test_fixed_shapes_hold_nearly_every_microbatch_and_are_at_least_97_percent_real(num_microbatches):
    """The shape that a GPU gets, for lengths as in WMT text and the settings of the classic recipe."""
    config = BatchConfig(target_tokens=26_600, num_microbatches=num_microbatches, max_pieces=56)
    plan = BatchPlan([shard_of(wmt_lengths(100_000))], config, seed=1)
    slots = usual_slots(plan)
    num_packed = num_real = 0
    steps = range(plan.steps_per_epoch + 1, plan.steps_per_epoch + 61)
    for step in map(plan.step, steps):
        for number in range(num_microbatches):
            b = plan.batch(step, number)
            words = pack(sentences_of(b), slots)
            num_packed += words is not None
            num_real += b.num_target_tokens
    total = len(steps) * num_microbatches
    assert num_packed >= 0.95 * total
    assert num_real / (total * slots.target) >= 0.97
    assert slots.source % 16 == slots.target % 16 == 0


def test_a_microbatch_beyond_its_slots_is_cut_until_it_fits_and_none_of_it_is_lost():
    lengths = np.random.default_rng(1).integers(2, 60, (400, 2))
    small, large = (
        BatchPlan([shard_of(lengths)], BatchConfig(target_tokens=tokens, num_microbatches=1, max_pieces=60), 1)
        for tokens in (100, 5_000)
    )
    batch = large.batch(large.step(1), 0)
    whole = sentences_of(batch)
    slots = usual_slots(small)
    blocks = pack_all(whole, slots)
    assert len(blocks) > 5
    for name, expected in (("source_ids", batch.source_ids), ("labels", batch.target_ids)):
        first, last = places_of(slots)[name]
        real = [block[first:last][block[first:last] != 0] for block in blocks]
        assert np.concatenate(real).tolist() == expected.tolist()
    assert len(pack_all(whole, usual_slots(large))) == 1


def test_slots_hold_the_longest_sentence_even_if_no_usual_step_has_it():
    lengths = np.random.default_rng(1).integers((2, 20), (3, 30), (2_000, 2))
    config = BatchConfig(target_tokens=100, num_microbatches=1, max_pieces=98)
    steps = range(1, 129)  # those that are looked at
    plan = BatchPlan([shard_of(lengths)], config, 1)
    seen = np.concatenate([plan.step(step).microbatches[0] for step in steps])
    unseen = np.setdiff1d(np.arange(len(lengths)), seen)[0]
    lengths[unseen] = (99, lengths[unseen, 1])
    plan = BatchPlan([shard_of(lengths), shard_of(lengths[:1])], config, 1)
    slots = usual_slots(plan)
    assert plan.longest == (99, 29)
    assert max(plan.step(step).source_tokens for step in steps) < 99 <= slots.source
    alone = plan._gather(0, np.array([unseen]))
    assert pack(sentences_of(alone), slots) is not None


def test_slots_of_a_corpus_smaller_than_a_step():
    plan = BatchPlan(
        [shard_of(np.full((3, 2), 10))], BatchConfig(target_tokens=400, num_microbatches=2, max_pieces=60), 1
    )
    slots = usual_slots(plan)
    assert (slots.source, slots.target) == (48, 48)
