"""How much room the batches of a run need, so that all have one shape; and a batch that fills it with nothing."""

import numpy as np

from dragoman.data.batches import BatchPlan
from dragoman.model.fused.tiles import TILE
from dragoman.model.fused.words import Sentences, Slots, pack, set_header, tiles_of

SLOT_MULTIPLE, TILES_MULTIPLE = 16, 16
SAMPLED_STEPS, DEVIATIONS = 128, 3.5


def usual_slots(plan: BatchPlan) -> Slots:
    """Room for nearly every microbatch, and for the longest sentence by itself. One in some thousands is fuller and
    takes two passes; more room would cost every step a little."""
    steps = [plan.step(step) for step in range(1, min(SAMPLED_STEPS, plan.steps_per_epoch) + 1)]
    sides = [
        tuple(plan.shards[step.block].lengths[indices].astype(np.int64).T)
        for step in steps
        for indices in step.microbatches
        if len(indices)
    ]
    sides.append(tuple(np.array([length]) for length in plan.longest))
    # Tokens first, in whole tiles of matrix products; slots that stay empty need programs too.
    tokens = np.array([(source.sum(), target.sum()) for source, target in sides])
    source_slots, target_slots = _room_for(tokens, SLOT_MULTIPLE)
    cuts = [tiles_of(source, target, source_slots, target_slots) for source, target in sides]
    tiles = np.array([[cut.shape[1] for cut in kinds] for kinds in cuts])
    among_source, among_target, to_source = _room_for(tiles, TILES_MULTIPLE)
    return Slots(source_slots, target_slots, (among_source, among_target, to_source))


def _room_for(needed: np.ndarray, multiple: int) -> list[int]:
    """Rows of what microbatches need, the last one of what must fit in any case."""
    usual, least = needed[:-1], needed[-1]
    most = np.max([usual.max(0), usual.mean(0) + DEVIATIONS * usual.std(0), least], axis=0)
    return (np.ceil(most / multiple).astype(int) * multiple).tolist()


def empty_words(slots: Slots) -> np.ndarray:
    """Sentences of one word, over and over, whose gradient is multiplied with zero."""
    lengths = np.full(min(slots.source, slots.target) // TILE, TILE, dtype=np.int64)
    ids = np.ones(int(lengths.sum()), dtype=np.int64)
    words = pack(Sentences(ids, lengths, ids, ids, lengths), slots)
    assert words is not None, "full tiles are the fewest"
    set_header(words, 0, 0.0)
    return words
