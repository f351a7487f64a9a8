"""How much is decoded at once: what a device has room for, and how sentences are cut into batches. Knows no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.config import ModelConfig

MOST_ROWS = 2_048  # sentences x beam: enough for the products of a step to fill a large GPU
MOST_TOKENS = 32_768  # of the source
# Of the cache; the rest of what a search takes is some quarters of that.
MOST_BYTES, SHARE_OF_FREE = 8 << 30, 1 / 8
LOGIT_BYTES = 4
LEAST_SENTENCES = 16  # fewer are not faster, and would need graphs of their own


@dataclass(frozen=True)
class Room:
    """What fits at once."""

    rows: int  # sentences x beam
    slots: int  # of the cache: rows x positions
    tokens: int  # of the source


def room_in(free_bytes: int, config: ModelConfig, vocab_size: int, value_bytes: int) -> Room:
    """A share of the free memory: training and others want some too."""
    budget = min(MOST_BYTES, int(free_bytes * SHARE_OF_FREE))
    slot_bytes = config.num_decoder_layers * 2 * config.d_model * value_bytes
    return Room(
        rows=min(MOST_ROWS, budget // 4 // (vocab_size * LOGIT_BYTES)),
        slots=budget // slot_bytes,
        tokens=min(MOST_TOKENS, budget // 4 // slot_bytes),
    )


def most_sentences(room: Room, beam: int, max_length: int) -> int:
    """A power of two, so that few graphs serve every batch; at least one, whatever the room."""
    rows = min(room.rows, room.slots // max_length)
    return 1 << (max(rows // beam, 1).bit_length() - 1)


def capacity_for(num_sentences: int, most: int) -> int:
    """How many sentences the graph that takes these is made for."""
    return min(most, max(LEAST_SENTENCES, 1 << (num_sentences - 1).bit_length()))


def cut_batches(lengths: Sequence[int], most: int, most_tokens: int) -> list[list[int]]:
    """Places of sentences, longest first, so that those of a batch end together. Every batch has at least one."""
    batches: list[list[int]] = []
    num_tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        num_tokens += lengths[index]
        if not batches or len(batches[-1]) == most or num_tokens > most_tokens:
            batches.append([])
            num_tokens = lengths[index]
        batches[-1].append(index)
    return batches
