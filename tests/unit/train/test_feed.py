"""From planned batches to pieces: the right steps in order, and every microbatch on exactly one rank."""

import pytest
import torch

from dragoman.config import BatchConfig
from dragoman.data.batches import Batch, BatchPlan
from dragoman.data.shards import open_shards
from dragoman.dist.world import World
from dragoman.train.feed import feed

CPU = torch.device("cpu")


def piece_of(batch: Batch, index: int) -> tuple[int, Batch]:
    return index, batch


@pytest.fixture
def plan(phrasebook_data) -> BatchPlan:
    config = BatchConfig(target_tokens=400, num_microbatches=5, max_pieces=60)
    return BatchPlan(open_shards(phrasebook_data).shards, config, seed=3)


def test_steps_come_in_order_from_wherever_a_run_goes_on(plan):
    assert [each.plan.step for each in feed(plan, World(0, 1, 0, CPU), range(7, 20), piece_of)] == list(range(7, 20))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_ranks_share_every_microbatch_exactly_once(plan, size):
    ranks = [list(feed(plan, World(rank, size, rank, CPU), range(1, 4), piece_of)) for rank in range(size)]
    for number in range(3):
        pieces = [piece for steps in ranks for piece in steps[number].pieces]
        assert sorted(index for index, _ in pieces) == list(range(5))
        assert sum(len(batch.target_ids) for _, batch in pieces) == ranks[0][number].plan.target_tokens
        assert sum(steps[number].own_tokens for steps in ranks) == ranks[0][number].plan.target_tokens
        for index, own in pieces:
            batch = plan.batch(plan.step(number + 1), index)
            assert own.target_ids.tolist() == batch.target_ids.tolist()
            assert own.source_ids.tolist() == batch.source_ids.tolist()


def test_a_rank_without_a_sentence_gets_nothing_to_compute(plan):
    """Five microbatches over seven ranks: the last two have none."""
    steps = [next(feed(plan, World(rank, 7, rank, CPU), range(1, 2), piece_of)) for rank in range(7)]
    assert [len(step.pieces) for step in steps] == [1, 1, 1, 1, 1, 0, 0]
    assert len({step.plan.target_tokens for step in steps}) == 1


def test_an_error_while_preparing_reaches_the_loop(plan):
    def broken():
        yield 1
        raise ValueError("no such step")

    inputs = feed(plan, World(0, 1, 0, CPU), broken(), piece_of)
    assert next(inputs).plan.step == 1
    with pytest.raises(ValueError, match="no such step"):
        next(inputs)
