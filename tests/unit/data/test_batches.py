"""Which sentences make up a step: a pure function, every sentence once an epoch, within the budget."""

from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.config import BatchConfig
from dragoman.data.batches import Batch, BatchPlan
from dragoman.data.vocab import EOS_ID
from dragoman.errors import DragomanError
from synthetic_shards import shard_of, wmt_lengths

SMALL = BatchConfig(target_tokens=400, num_microbatches=4, max_pieces=40)


def random_lengths(num_pairs: int, seed: int = 1, longest: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).integers(2, longest + 2, (num_pairs, 2))


def three_shards() -> list[SimpleNamespace]:
    return [shard_of(random_lengths(size, seed), first=1_000 * seed) for seed, size in ((1, 300), (2, 170), (3, 40))]


def sentences_of(plan: BatchPlan, steps: range) -> list[int]:
    """The first word of every sentence of these steps, as it arrives in a batch."""
    found: list[int] = []
    for step in steps:
        step_plan = plan.step(step)
        for number in range(plan.config.num_microbatches):
            batch = plan.batch(step_plan, number)
            if batch is not None:
                found += batch.target_ids[np.cumsum(batch.target_lengths) - batch.target_lengths].tolist()
    return found


def epoch(plan: BatchPlan, number: int) -> range:
    return range(1 + number * plan.steps_per_epoch, 1 + (number + 1) * plan.steps_per_epoch)


def test_every_sentence_comes_exactly_once_an_epoch():
    shards = three_shards()
    plan = BatchPlan(shards, SMALL, seed=1)
    every = sorted(
        first + i for first, shard in zip((1_000, 2_000, 3_000), shards, strict=True) for i in range(shard.num_pairs)
    )
    for number in range(3):
        assert sorted(sentences_of(plan, epoch(plan, number))) == every


def test_order_differs_by_epoch_and_by_seed():
    shards = three_shards()
    plan, other = BatchPlan(shards, SMALL, seed=1), BatchPlan(shards, SMALL, seed=2)
    orders = [
        sentences_of(plan, epoch(plan, 0)),
        sentences_of(plan, epoch(plan, 1)),
        sentences_of(other, epoch(other, 0)),
    ]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]
    one_block = BatchPlan(shards[:1], SMALL, seed=1)
    assert sentences_of(one_block, epoch(one_block, 0)) != sentences_of(one_block, epoch(one_block, 1))
    blocks = {tuple(dict.fromkeys(plan.locate(step)[1] for step in epoch(plan, number))) for number in range(8)}
    assert len(blocks) > 1


def test_a_step_needs_no_state():
    """A fresh plan asked for a late step at once equals one that went through other steps before."""
    shards = three_shards()
    walked = BatchPlan(shards, SMALL, seed=7)
    for step in (1, 50, 999_999, 2):
        walked.step(step)
    for step in (3, 1_000_000):
        here, there = walked.step(step), BatchPlan(shards, SMALL, seed=7).step(step)
        assert (here.epoch, here.block) == (there.epoch, there.block)
        assert here.epoch == (step - 1) // walked.steps_per_epoch
        for mine, theirs in zip(here.microbatches, there.microbatches, strict=True):
            assert mine.tolist() == theirs.tolist()


def test_the_order_of_sentences_is_frozen():
    """Another order would change every run that is resumed with a newer version of us or of numpy."""
    lengths = np.stack([2 + np.arange(60) * 7 % 39, 2 + np.arange(60) * 11 % 38], axis=1)
    plan = BatchPlan([shard_of(lengths)], SMALL, seed=5)
    assert [part.tolist() for part in plan.step(2).microbatches] == [
        [52, 40, 54],
        [21, 33, 16],
        [35, 12, 37, 17],
        [43, 5, 6, 3],
    ]


def test_steps_keep_to_the_budget():
    plan = BatchPlan([shard_of(random_lengths(3_000))], SMALL, seed=1)
    tokens = [plan.step(step).target_tokens for step in epoch(plan, 0)]
    longest = SMALL.max_pieces + 1
    assert np.mean(tokens) <= SMALL.target_tokens
    assert np.mean(tokens) > 0.95 * SMALL.target_tokens
    assert max(tokens) <= SMALL.target_tokens + longest
    assert min(tokens) >= SMALL.target_tokens * 0.95 - longest


def test_what_a_plan_says_of_a_step_is_what_its_batches_hold():
    plan = BatchPlan(three_shards(), SMALL, seed=1)
    for step in (1, 4, 9):
        said = plan.step(step)
        batches = [plan.batch(said, number) for number in range(SMALL.num_microbatches)]
        assert said.target_tokens == sum(batch.num_target_tokens for batch in batches)
        assert said.source_tokens == sum(batch.num_source_tokens for batch in batches)
        assert said.num_sentences == sum(batch.num_sentences for batch in batches)
        for batch in batches:
            ends = np.cumsum(batch.source_lengths) - 1
            assert (batch.source_ids[ends] == EOS_ID).all()
            assert (batch.source_ids[ends - 1] == batch.target_ids[np.cumsum(batch.target_lengths) - 2]).mean() > 0.8


def test_microbatches_of_a_step_are_nearly_equal():
    config = BatchConfig(target_tokens=26_600, num_microbatches=8, max_pieces=56)
    plan = BatchPlan([shard_of(wmt_lengths(20_000))], config, seed=1)
    for step in range(1, 10):
        step_plan = plan.step(step)
        tokens = [plan.batch(step_plan, number).num_target_tokens for number in range(8)]
        counts = [len(part) for part in step_plan.microbatches]
        assert max(counts) - min(counts) <= 1
        assert max(tokens) - min(tokens) < 0.03 * np.mean(tokens)


def test_the_decoder_reads_the_labels_moved_right():
    batch = Batch(np.array([4, 2, 5, 2]), np.array([2, 2]), np.array([6, 7, 2, 8, 2]), np.array([3, 2]))
    assert batch.input_ids.tolist() == [2, 6, 7, 2, 8]


def test_pairs_too_long_on_either_side_are_counted_and_never_seen():
    lengths = random_lengths(100)
    lengths[3, 0], lengths[50, 1], lengths[99] = 42, 300, (42, 42)
    plan = BatchPlan([shard_of(lengths)], SMALL, seed=1)
    assert (plan.num_pairs, plan.num_too_long) == (97, 3)
    assert sorted(sentences_of(plan, epoch(plan, 0))) == [10 + i for i in range(100) if i not in (3, 50, 99)]


def test_a_corpus_without_a_fitting_pair_is_the_users_to_mend():
    with pytest.raises(DragomanError, match=r"batch\.max_pieces = 40"):
        BatchPlan([shard_of(np.full((5, 2), 50))], SMALL, seed=1)


def test_a_shard_without_a_fitting_pair_is_passed_over():
    shards = [shard_of(random_lengths(100)), shard_of(np.full((5, 2), 50), first=500)]
    plan = BatchPlan(shards, SMALL, seed=1)
    for number in range(4):
        assert sorted(sentences_of(plan, epoch(plan, number))) == [10 + i for i in range(100)]


def test_fewer_sentences_than_microbatches_leave_some_empty():
    plan = BatchPlan([shard_of(np.full((3, 2), 5))], SMALL, seed=1)
    assert plan.steps_per_epoch == 1
    step_plan = plan.step(1)
    batches = [plan.batch(step_plan, number) for number in range(4)]
    assert [batch is None for batch in batches] == [False, False, False, True]


@pytest.mark.parametrize(
    "lengths", [[(2, 2), (2, 10)], [(2, 10)] * 2 + [(2, 1)] * 2, [(2, 10), (2, 2), (2, 10), (2, 9)]]
)
def test_no_step_is_empty_even_if_one_sentence_is_a_whole_budget(lengths):
    config = BatchConfig(target_tokens=10, num_microbatches=1, max_pieces=9)
    for seed in range(20):
        plan = BatchPlan([shard_of(np.array(lengths))], config, seed)
        for number in range(3):
            assert all(plan.step(step).num_sentences for step in epoch(plan, number))
            assert len(sentences_of(plan, epoch(plan, number))) == len(lengths)


def test_the_fixed_sample_is_the_same_for_the_life_of_a_run():
    shards = three_shards()
    sample = BatchPlan(shards, SMALL, seed=1).fixed_sample(50)
    again = BatchPlan(shards, SMALL, seed=1).fixed_sample(50)
    assert sample.num_sentences == 50
    assert sample.target_ids.tolist() == again.target_ids.tolist()
    assert BatchPlan(shards, SMALL, seed=1).fixed_sample(10_000).num_sentences == 300
