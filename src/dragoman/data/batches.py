"""Which sentences make up step N: a pure function of (shards, settings, seed, step). Knows no torch and no ranks.

A shard is a block. The number of steps in a block depends on its token count alone, so step -> (epoch, block) is
arithmetic, and finding a batch costs one block whatever the size of the corpus. Resuming needs no state.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.config import CutBatch
from dragoman.data.shards import Ids, Shard
from dragoman.data.vocab import EOS_ID
from dragoman.errors import DragomanError

Ints = NDArray[np.int64]

# Steps are filled to this share of the budget on average, so that the unevenness of sentences rarely overflows it.
FILL_SHARE = 0.985


@dataclass(frozen=True)
class Batch:
    """Sentence pairs laid end to end on both sides, shortest first. Every sequence ends in EOS."""

    source_ids: Ints  # (S,) int64
    source_lengths: Ints  # (B,) int64
    target_ids: Ints  # (T,) int64: the labels
    target_lengths: Ints  # (B,) int64

    @property
    def input_ids(self) -> Ints:
        """What the decoder reads: the labels moved right by one; EOS starts every sequence."""
        inputs = np.empty_like(self.target_ids)
        inputs[1:] = self.target_ids[:-1]
        inputs[np.cumsum(self.target_lengths) - self.target_lengths] = EOS_ID
        return inputs

    @property
    def num_sentences(self) -> int:
        return len(self.target_lengths)

    @property
    def num_target_tokens(self) -> int:
        """EOS counted."""
        return int(self.target_lengths.sum())

    @property
    def num_source_tokens(self) -> int:
        return int(self.source_lengths.sum())


def batch_of(sources: Sequence[NDArray[Any]], targets: Sequence[NDArray[Any]]) -> Batch:
    """A batch from loose sequences, which already end in EOS."""
    return Batch(
        np.concatenate(sources).astype(np.int64),
        np.array([len(s) for s in sources], dtype=np.int64),
        np.concatenate(targets).astype(np.int64),
        np.array([len(t) for t in targets], dtype=np.int64),
    )


@dataclass(frozen=True)
class StepPlan:
    """The sentences of one step, dealt into microbatches. The same on every rank."""

    step: int
    epoch: int
    block: int
    microbatches: list[Ints]  # indices into the block
    num_sentences: int
    source_tokens: int
    target_tokens: int


@dataclass(frozen=True)
class _Block:
    """One block in the order of one epoch."""

    order: Ints  # sentences that fit, shuffled
    ends: Ints  # where each step ends in that order


class BatchPlan:
    """Step number -> sentences -> batches."""

    def __init__(self, shards: Sequence[Shard], config: CutBatch, seed: int) -> None:
        self.shards = shards
        self.config = config
        self.seed = seed
        usable = [self._usable(shard) for shard in shards]
        self.num_pairs = sum(len(indices) for indices in usable)
        self.num_too_long = sum(shard.num_pairs for shard in shards) - self.num_pairs
        if self.num_pairs == 0:
            raise DragomanError(
                f"no training pair fits into batch.max_pieces = {config.max_pieces}", "raise batch.max_pieces"
            )
        tokens = [_token_sums(shard, indices) for shard, indices in zip(shards, usable, strict=True)]
        most = [s.lengths[indices].max(axis=0) for s, indices in zip(shards, usable, strict=True) if len(indices)]
        self.longest: tuple[int, int] = tuple(np.max(most, axis=0).tolist())  # source and target, EOS counted
        self.target_tokens = sum(target for _, target in tokens)
        self.source_tokens = sum(source for source, _ in tokens)
        step_tokens = config.target_tokens * FILL_SHARE
        self.block_steps: list[int] = [
            min(math.ceil(target / step_tokens), len(indices))
            for (_, target), indices in zip(tokens, usable, strict=True)
        ]
        self.steps_per_epoch = sum(self.block_steps)
        self._block = lru_cache(maxsize=2)(self._make_block)

    def _usable(self, shard: Shard) -> Ints:
        return np.flatnonzero((shard.lengths <= self.config.max_pieces + 1).all(axis=1))

    def _make_block(self, epoch: int, block: int) -> _Block:
        shard = self.shards[block]
        usable = self._usable(shard)
        order = usable[_permutation(len(usable), self.seed, epoch, block)]
        cumulative = np.cumsum(shard.lengths[order, 1], dtype=np.int64)
        num_steps = self.block_steps[block]
        shares = cumulative[-1] * np.arange(1, num_steps + 1) // num_steps
        ends = np.asarray(np.searchsorted(cumulative, shares, side="left") + 1, dtype=np.int64)
        # A sentence as long as a step's share could leave its neighbour none: every step gets at least one.
        places = np.arange(num_steps)
        ends = np.maximum.accumulate(ends - places) + places
        return _Block(order, np.minimum(ends, len(order) - num_steps + 1 + places))

    def locate(self, step: int) -> tuple[int, int, int]:
        """(epoch, block, step within the block) of a step; steps count from 1."""
        epoch, rest = divmod(step - 1, self.steps_per_epoch)
        for block in map(int, _permutation(len(self.shards), self.seed, epoch)):
            if rest < self.block_steps[block]:
                return epoch, block, rest
            rest -= self.block_steps[block]
        raise AssertionError("blocks do not cover the epoch")

    def step(self, step: int) -> StepPlan:
        """The sentences of a step, dealt so that every microbatch has the same mix of lengths."""
        epoch, block, place = self.locate(step)
        ordered = self._block(epoch, block)
        first = int(ordered.ends[place - 1]) if place else 0
        chosen = ordered.order[first : int(ordered.ends[place])]
        lengths = self.shards[block].lengths[chosen].astype(np.int64)
        chosen = chosen[np.lexsort((chosen, lengths[:, 0], lengths[:, 1]))]
        num = self.config.num_microbatches
        deal = np.concatenate([np.arange(num), np.arange(num)[::-1]])
        hands = np.resize(deal, len(chosen))
        return StepPlan(
            step,
            epoch,
            block,
            [chosen[hands == hand] for hand in range(num)],
            len(chosen),
            int(lengths[:, 0].sum()),
            int(lengths[:, 1].sum()),
        )

    def batch(self, plan: StepPlan, microbatch: int) -> Batch | None:
        """One microbatch of a step; None where there were fewer sentences than microbatches."""
        indices = plan.microbatches[microbatch]
        return self._gather(plan.block, indices) if len(indices) else None

    def fixed_sample(self, num_pairs: int) -> Batch | None:
        """The same training pairs for the life of the run, whose loss is compared with the dev loss."""
        usable = self._usable(self.shards[0])
        chosen = usable[_permutation(len(usable), self.seed, 0, 0, 1)[:num_pairs]]
        return self._gather(0, chosen) if len(chosen) else None

    def _gather(self, block: int, indices: Ints) -> Batch:
        shard = self.shards[block]
        lengths = shard.lengths[indices].astype(np.int64)
        return Batch(
            _take(shard.source_ids, shard.source_offsets[indices], lengths[:, 0]),
            lengths[:, 0],
            _take(shard.target_ids, shard.target_offsets[indices], lengths[:, 1]),
            lengths[:, 1],
        )


def _take(ids: Ids, offsets: Ints, lengths: Ints) -> Ints:
    starts = np.cumsum(lengths) - lengths
    return ids[np.repeat(offsets - starts, lengths) + np.arange(lengths.sum())].astype(np.int64)


def _token_sums(shard: Shard, indices: Ints) -> tuple[int, int]:
    source, target = shard.lengths[indices].sum(axis=0, dtype=np.int64)
    return int(source), int(target)


def _permutation(size: int, *key: int) -> Ints:
    """A shuffle from the raw stream of a bit generator, the part of numpy that never changes between versions."""
    bits = np.random.PCG64([k % 2**32 for k in key])
    return np.argsort(bits.random_raw(size), kind="stable")
