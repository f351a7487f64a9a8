"""From planned batches to tensors: the right steps in order, and every microbatch on exactly one rank."""

import numpy as np
import pytest
import torch

from dragoman.config import BatchConfig
from dragoman.data.batches import BatchPlan, batch_of, fill
from dragoman.data.shards import open_shards
from dragoman.dist.world import World
from dragoman.train.feed import Microbatch, feed

CPU = torch.device("cpu")


@pytest.fixture
def plan(phrasebook_data) -> BatchPlan:
    config = BatchConfig(target_tokens=400, num_microbatches=5, max_pieces=60)
    return BatchPlan(open_shards(phrasebook_data).shards, config, seed=3)


def test_steps_come_in_order_from_wherever_a_run_goes_on(plan):
    assert [each.plan.step for each in feed(plan, World(0, 1, 0, CPU), range(7, 20))] == list(range(7, 20))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_ranks_share_every_microbatch_exactly_once(plan, size):
    ranks = [list(feed(plan, World(rank, size, rank, CPU), range(1, 4))) for rank in range(size)]
    for number in range(3):
        pieces = [piece for steps in ranks for piece in steps[number].microbatches]
        assert sorted(piece.index for piece in pieces) == list(range(5))
        assert sum(len(piece.labels) for piece in pieces) == ranks[0][number].plan.target_tokens
        for piece in pieces:
            batch = plan.batch(plan.step(number + 1), piece.index)
            assert piece.labels.tolist() == batch.target_ids.tolist()
            assert piece.source_ids.tolist() == batch.source_ids.tolist()


def test_a_rank_without_a_sentence_gets_nothing_to_compute(plan):
    """Five microbatches over seven ranks: the last two have none."""
    steps = [next(feed(plan, World(rank, 7, rank, CPU), range(1, 2))) for rank in range(7)]
    assert [len(step.microbatches) for step in steps] == [1, 1, 1, 1, 1, 0, 0]
    assert len({step.plan.target_tokens for step in steps}) == 1


def test_an_error_while_preparing_reaches_the_loop(plan):
    def broken():
        yield 1
        raise ValueError("no such step")

    inputs = feed(plan, World(0, 1, 0, CPU), broken())
    assert next(inputs).plan.step == 1
    with pytest.raises(ValueError, match="no such step"):
        next(inputs)


def test_fillers_weigh_nothing():
    batch = batch_of([np.array([5, 2])] * 2, [np.array([6, 7, 2]), np.array([8, 2])])
    piece = Microbatch.of(fill(batch, 8, 12, max_length=4), 3, CPU)
    assert piece.index == 3
    assert piece.weights.tolist() == [1.0] * 5 + [0.0] * 7
    assert piece.labels.dtype == torch.int64
