"""Shards in memory, whose sentences can be recognised."""

from types import SimpleNamespace

import numpy as np

from dragoman.data.shards import offsets_of
from dragoman.data.vocab import EOS_ID


def shard_of(lengths: np.ndarray, first: int = 10) -> SimpleNamespace:
    """A shard in memory: sentence i is the word `first + i` again and again, then EOS, so that it can be recognised."""
    lengths = np.asarray(lengths, dtype=np.uint16)
    sides = [
        np.concatenate([np.append(np.full(length - 1, first + i), EOS_ID) for i, length in enumerate(column.tolist())])
        for column in lengths.T
    ]
    return SimpleNamespace(
        lengths=lengths,
        num_pairs=len(lengths),
        source_ids=sides[0],
        target_ids=sides[1],
        source_offsets=offsets_of(lengths[:, 0]),
        target_offsets=offsets_of(lengths[:, 1]),
    )


def wmt_lengths(num_pairs: int) -> np.ndarray:
    """English-German news: 27 pieces on average, log-normal, both sides alike, EOS included."""
    random = np.random.default_rng(2)
    source = random.lognormal(3.1, 0.6, num_pairs)
    target = source * random.lognormal(0.05, 0.2, num_pairs)
    return np.clip(np.rint(np.stack([source, target], axis=1)) + 1, 2, 57)
