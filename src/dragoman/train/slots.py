"""How much room the batches of a run need, so that all have one shape; and a batch that fills it with nothing."""

from collections.abc import Callable, Sequence

import numpy as np

from dragoman.data.batches import BatchPlan
from dragoman.model.fused.tiles import TILE
from dragoman.model.fused.words import Sentences, Slots, pack, set_header, tiles_of

SLOT_MULTIPLE, TILES_MULTIPLE = 16, 16
SAMPLED_STEPS, DEVIATIONS = 128, 3.5


def usual_slots(plan: BatchPlan) -> Slots:
    """Room for nearly every microbatch. One in some thousands is fuller and takes a pass without a graph, which costs
    a step or two; more room would cost every step a little."""
    steps = [plan.step(step) for step in range(1, min(SAMPLED_STEPS, plan.steps_per_epoch) + 1)]
    sides = [
        tuple(plan.shards[step.block].lengths[indices].astype(np.int64).T)
        for step in steps
        for indices in step.microbatches
        if len(indices)
    ]
    return _slots_for(sides, lambda needed: np.maximum(needed.max(0), needed.mean(0) + DEVIATIONS * needed.std(0)))


def slots_for(source_lengths: np.ndarray, target_lengths: np.ndarray) -> Slots:
    """Just enough for these sentences."""
    return _slots_for([(source_lengths, target_lengths)], lambda needed: needed.max(0))


def _slots_for(sides: Sequence[Sequence[np.ndarray]], room: Callable[[np.ndarray], np.ndarray]) -> Slots:
    """Tokens first, in whole tiles of matrix products; slots that stay empty need programs too."""
    tokens = np.array([(source.sum(), target.sum()) for source, target in sides])
    source_slots, target_slots = _round_up(room(tokens), SLOT_MULTIPLE)
    cuts = [tiles_of(source, target, source_slots, target_slots) for source, target in sides]
    tiles = np.array([[cut.shape[1] for cut in kinds] for kinds in cuts])
    among_source, among_target, to_source = _round_up(room(tiles), TILES_MULTIPLE)
    return Slots(source_slots, target_slots, (among_source, among_target, to_source))


def _round_up(sizes: np.ndarray, multiple: int) -> list[int]:
    return (np.ceil(sizes / multiple).astype(int) * multiple).tolist()


def empty_words(slots: Slots) -> np.ndarray:
    """Sentences of one word, over and over, whose gradient is multiplied with zero."""
    lengths = np.full(min(slots.source, slots.target) // TILE, TILE, dtype=np.int64)
    ids = np.ones(int(lengths.sum()), dtype=np.int64)
    words = pack(Sentences(ids, lengths, ids, ids, lengths), slots)
    assert words is not None, "full tiles are the fewest"
    set_header(words, 0, 0.0)
    return words
