"""A packed batch as one block of 32-bit words on the host: one copy brings it to the GPU, and its shape never changes.

Shape letters: S source slots, T target slots. Slots behind the last token hold a token that belongs to no sentence,
sees none and weighs nothing. Knows lengths and ids, not where they come from.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.model.fused.tiles import FIELDS, NONE, Ints, cut_tiles

HEADER = 16  # words: two of the seed, the scale of the gradients; a multiple of 16 keeps all parts aligned
PAIRINGS = ("among_source", "among_target", "to_source")


@dataclass(frozen=True)
class Slots:
    """How much room there is: for tokens of both sides, and for the programs of each kind of attention."""

    source: int
    target: int
    tiles: tuple[int, int, int]  # among source, among target, from target to source

    @property
    def num_words(self) -> int:
        return max(last for _, last in places_of(self).values())


@dataclass(frozen=True)
class Sentences:
    """Pairs laid end to end on both sides."""

    source_ids: Ints
    source_lengths: Ints
    input_ids: Ints
    labels: Ints
    target_lengths: Ints

    def halves(self) -> "tuple[Sentences, Sentences]":
        middle = len(self.source_lengths) // 2
        source, target = int(self.source_lengths[:middle].sum()), int(self.target_lengths[:middle].sum())
        cuts = (source, middle, target, target, middle)
        parts = (self.source_ids, self.source_lengths, self.input_ids, self.labels, self.target_lengths)
        return (
            Sentences(*(part[:cut] for part, cut in zip(parts, cuts, strict=True))),
            Sentences(*(part[cut:] for part, cut in zip(parts, cuts, strict=True))),
        )


def places_of(slots: Slots) -> dict[str, tuple[int, int]]:
    """Where each part of the block begins and ends."""
    sizes = {
        "header": HEADER,
        "source_ids": slots.source,
        "source_first": slots.source,
        "source_last": slots.source,
        "input_ids": slots.target,
        "labels": slots.target,
        "weights": slots.target,
        "target_first": slots.target,
        "target_last": slots.target,
        "partner_first": slots.target,
        "partner_last": slots.target,
        **{name: FIELDS * num_tiles for name, num_tiles in zip(PAIRINGS, slots.tiles, strict=True)},
    }
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: (end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


def tiles_of(source_lengths: Ints, target_lengths: Ints, source_slots: int, target_slots: int) -> tuple[Ints, ...]:
    """The programs of each kind of attention, in the order of `PAIRINGS`."""
    source, target = (source_lengths, source_slots), (target_lengths, target_slots)
    pairs = ((source, source, False), (target, target, True), (target, source, False))
    return tuple(cut_tiles(q[0], k[0], q[1], k[1], causal) for q, k, causal in pairs)


def pack(sentences: Sentences, slots: Slots) -> NDArray[np.int32] | None:
    """The block, with the places where each token's own sentence and its partner begin and end; None where the slots
    do not suffice."""
    words = np.zeros(slots.num_words, dtype=np.int32)
    parts = {name: words[first:last] for name, (first, last) in places_of(slots).items()}
    source_bounds, target_bounds = _bounds(sentences.source_lengths), _bounds(sentences.target_lengths)
    num_source, num_target = len(sentences.source_ids), len(sentences.labels)
    if num_source > slots.source or num_target > slots.target:
        return None
    tiles = tiles_of(sentences.source_lengths, sentences.target_lengths, slots.source, slots.target)
    for name, room, cut in zip(PAIRINGS, slots.tiles, tiles, strict=True):
        if cut.shape[1] > room:
            return None
        table = parts[name].reshape(FIELDS, room)
        table[0] = NONE
        table[:, : cut.shape[1]] = cut
    parts["source_ids"][:num_source] = sentences.source_ids
    parts["input_ids"][:num_target] = sentences.input_ids
    parts["labels"][:num_target] = sentences.labels
    parts["weights"].view(np.float32)[:num_target] = 1.0
    for name, bounds, lengths in (
        ("source", source_bounds, sentences.source_lengths),
        ("target", target_bounds, sentences.target_lengths),
        ("partner", source_bounds, sentences.target_lengths),
    ):
        num_tokens = int(lengths.sum())
        for side, values in zip(("first", "last"), bounds, strict=True):
            part = parts[f"{name}_{side}"]
            part[:num_tokens] = np.repeat(values, lengths)
            part[num_tokens:] = np.arange(num_tokens, len(part))  # an empty sentence of its own
    return words


def pack_all(sentences: Sentences, slots: Slots) -> list[NDArray[np.int32]]:
    """One block, or as many as it takes where the slots do not suffice. Any one sentence must fit."""
    words = pack(sentences, slots)
    if words is not None:
        return [words]
    assert len(sentences.source_lengths) > 1, "slots hold the longest sentence"
    return [block for half in sentences.halves() for block in pack_all(half, slots)]


def _bounds(lengths: Ints) -> tuple[Ints, Ints]:
    last = np.cumsum(lengths)
    return last - lengths, last


def set_header(words: NDArray[np.int32], seed: int, scale: float) -> None:
    """The seed of dropout and what gradients are multiplied with."""
    words[:2] = np.array([seed], dtype=np.uint64).view(np.int32)
    words[2:3] = np.array([scale], dtype=np.float32).view(np.int32)
