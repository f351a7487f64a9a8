"""Text for a clock: sentence pairs of usual lengths and random pieces, where no data folder is at hand yet."""

import numpy as np

from dragoman.config import Recipe
from dragoman.data.shards import ID_TYPE, Shard, offsets_of

MEDIAN_PIECES, SPREAD = 23.0, 0.6  # of a log-normal, as news and web text have it
SIDES_SPREAD = 0.15
FIRST_ID = 8  # beyond the special pieces
NUM_STEPS = 2


class SyntheticShard(Shard):
    """As much text as a few steps need, in memory; the same for the same recipe."""

    def __init__(self, recipe: Recipe) -> None:
        generator = np.random.Generator(np.random.PCG64(recipe.train.seed))
        num_pairs = 8 + round(NUM_STEPS * recipe.batch.target_tokens / MEDIAN_PIECES)
        target = MEDIAN_PIECES * np.exp(SPREAD * generator.standard_normal(num_pairs))
        source = target * np.exp(SIDES_SPREAD * generator.standard_normal(num_pairs))
        lengths = np.stack([source, target], axis=1).clip(2, recipe.batch.max_pieces + 1)
        self.name = "synthetic"
        self.num_pairs = num_pairs
        self.lengths = lengths.astype(ID_TYPE)
        self.source_offsets, self.target_offsets = (offsets_of(self.lengths[:, side]) for side in (0, 1))
        self.source_ids, self.target_ids = (
            generator.integers(FIRST_ID, recipe.vocab.size, size=self.lengths[:, side].sum(), dtype=ID_TYPE)
            for side in (0, 1)
        )
