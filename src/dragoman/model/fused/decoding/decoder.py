"""Beam search on a GPU: batches of sentences of similar length, every step of a batch replayed from a graph.

Shape letters: L decoder layers, X slots of the cache, S source slots, D width, B sentences. Knows ids, no text.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Lock

import torch

from dragoman.model.found import Found, SearchOptions
from dragoman.model.fused.decoding.beam import Beams
from dragoman.model.fused.decoding.best_words import best_words
from dragoman.model.fused.decoding.graph import Recorder
from dragoman.model.fused.decoding.log import read_log
from dragoman.model.fused.decoding.network import Network
from dragoman.model.fused.decoding.room import Room, capacity_for, cut_batches, most_sentences, room_in
from dragoman.model.fused.decoding.sources import pack_sources, slots_of
from dragoman.model.transformer import Transformer

LOOK_EVERY = 4  # steps between two looks at whether all is done: a look waits for the device
FEW_POSITIONS = 256  # tables this long serve nearly all batches
LEAST_TOKENS = 2_048


@dataclass(frozen=True)
class _Memory:
    """Keys and values that the graphs of a decoder share: of the target so far, and of the source."""

    cache_LX2D: torch.Tensor
    source_LS2D: torch.Tensor


class Decoder:
    """Knows a model's shape and keeps a rounded copy of its weights, made anew by every search. Not the model itself:
    who forgets that one forgets this."""

    def __init__(self, model: Transformer, dtype: torch.dtype = torch.float16, room: Room | None = None) -> None:
        self.device = model.embedding.weight.device
        self._config = model.config
        self._vocab_size = model.embedding.weight.shape[0]
        self._network = Network(model, dtype)
        self._room = room or room_in(_free_bytes(self.device), model.config, self._vocab_size, dtype.itemsize)
        self._lock = Lock()
        self._make_memory(0, 0)

    @torch.inference_mode()
    def search(
        self, model: Transformer, sources: Sequence[Sequence[int]], eos_id: int, options: SearchOptions
    ) -> list[list[Found]]:
        """As `model.search.search`; nothing for a sentence whose numbers were too large for the rounded copy."""
        found: list[list[Found]] = [[] for _ in sources]
        longest = min(options.max_length, self._config.max_positions)
        most = most_sentences(self._room, options.beam, longest)
        # Buffers are there once: one search at a time. Autocast would round to another type.
        with self._lock, _on(self.device), torch.autocast(self.device.type, enabled=False):
            self._network.weights.refresh(model)
            for batch in cut_batches([len(source) for source in sources], most, self._room.tokens):
                chosen = [sources[i] for i in batch]
                stepper = self._stepper(chosen, capacity_for(len(batch), most), longest, options)
                for i, best in zip(batch, stepper.search(chosen, eos_id, longest, options), strict=True):
                    found[i] = best
        return found

    def _stepper(
        self, sources: Sequence[Sequence[int]], num_sentences: int, longest: int, options: SearchOptions
    ) -> "_Stepper":
        """One that these sentences fit, with memory for them."""
        self._grow(num_sentences * options.beam * longest, slots_of(sum(map(len, sources))))
        positions = self._config.max_positions
        if longest <= FEW_POSITIONS:
            positions = min(positions, FEW_POSITIONS)
        key = (num_sentences, options.beam, positions)
        if key not in self._steppers:
            num_words = min(2 * options.beam, self._vocab_size)
            beams = Beams(num_sentences, options.beam, positions, self.device)
            self._steppers[key] = _Stepper(self._network, self._memory, beams, num_words, self._recorder)
        return self._steppers[key]

    def _grow(self, num_slots: int, num_tokens: int) -> None:
        """At least twofold, so that it is rare: graphs know where memory lies, and are lost with it."""
        slots, tokens = self._memory.cache_LX2D.shape[1], self._memory.source_LS2D.shape[1]
        if num_slots > slots or num_tokens > tokens:
            if num_slots > slots:
                slots = max(num_slots, min(2 * slots, self._room.slots))
            if num_tokens > tokens:
                tokens = max(num_tokens, min(max(2 * tokens, LEAST_TOKENS), self._room.tokens))
            self._make_memory(slots, tokens)

    def _make_memory(self, num_slots: int, num_tokens: int) -> None:
        self._steppers: dict[tuple[int, int, int], _Stepper] = {}
        self._recorder = Recorder(self.device)
        layers, width = self._config.num_decoder_layers, 2 * self._config.d_model
        self._memory = _Memory(*(torch.empty(0) for _ in range(2)))  # what was there goes before its successor comes
        self._memory = _Memory(
            *(
                torch.empty(layers, size, width, dtype=self._network.dtype, device=self.device)
                for size in (num_slots, num_tokens)
            )
        )


class _Stepper:
    """Searches for a fixed number of sentences at most."""

    def __init__(self, network: Network, memory: _Memory, beams: Beams, num_words: int, recorder: Recorder) -> None:
        self._network = network
        self._memory = memory
        self._beams = beams
        self._num_words = num_words
        self._ranges_2B = torch.zeros(2, beams.open_B.shape[0], dtype=torch.int32, device=beams.open_B.device)
        self._advance = recorder.record(self._step)

    def search(
        self, sources: Sequence[Sequence[int]], eos_id: int, max_length: int, options: SearchOptions
    ) -> list[list[Found]]:
        packed = pack_sources(sources, self._ranges_2B.shape[1])
        self._network.encode(packed, self._memory.source_LS2D)
        self._ranges_2B.copy_(torch.from_numpy(packed.ranges_2B))
        self._beams.start(len(sources), eos_id, max_length, options)
        num_steps = 0
        while num_steps < max_length and (num_steps % LOOK_EVERY or not self._beams.is_done()):
            self._advance()
            num_steps += 1
        return read_log(self._beams.log(num_steps), len(sources), eos_id, options)

    def _step(self) -> None:
        beams, memory = self._beams, self._memory
        logits_NV = self._network.logits(beams, self._ranges_2B, memory.cache_LX2D, memory.source_LS2D)
        beams.advance(*best_words(logits_NV, self._num_words, beams.open_B, beams.step_1, beams.eos_1))


def _free_bytes(device: torch.device) -> int:
    """What this process could still take. Torch's reserve is no guide: recorded passes of training hold parts of it."""
    if device.type != "cuda":
        return 1 << 30
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]


def _on(device: torch.device) -> AbstractContextManager[object]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
