"""A packed batch on the device: views of one block of words whose place never changes, so that a graph can read it."""

import torch

from dragoman.model.fused.attention import Sight
from dragoman.model.fused.tiles import FIELDS
from dragoman.model.fused.words import Slots, places_of


class PackedBatch:
    """Filling the block anew changes what the views hold, not where they are."""

    def __init__(self, words: torch.Tensor, slots: Slots) -> None:
        self.words = words
        self.slots = slots
        self._places = places_of(slots)
        self.seed = words[:2]
        self.scale = words[2:3].view(torch.float32)
        self.weights_T = self.part("weights").view(torch.float32)
        self.among_source = self._sight("source", "among_source", causal=False)
        self.among_target = self._sight("target", "among_target", causal=True)
        self.to_source = self._sight("partner", "to_source", causal=False)

    def part(self, name: str) -> torch.Tensor:
        first, last = self._places[name]
        return self.words[first:last]

    def _sight(self, keys: str, pairing: str, causal: bool) -> Sight:
        tiles = self.part(pairing).view(FIELDS, -1)
        return Sight(self.part(f"{keys}_first"), self.part(f"{keys}_last"), tiles, causal)
