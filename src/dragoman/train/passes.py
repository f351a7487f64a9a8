"""The forward and backward pass of one microbatch, in the fastest way that its device has.

The loop calls `forward` and `backward` in turn; the feed's thread calls `piece`, ahead of both.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from dragoman.config import Recipe
from dragoman.data.batches import Batch, BatchPlan
from dragoman.model.fused.words import Sentences, Slots, pack_all, set_header
from dragoman.model.loss import linear_cross_entropy
from dragoman.train.build import Built
from dragoman.train.slots import empty_words, usual_slots
from dragoman.train.tensors import BatchTensors


class Passes(Protocol):
    """What a device does with a microbatch. Gradients gather in the model's flat vector."""

    def piece(self, batch: Batch, index: int) -> Any:
        """A microbatch as `forward` wants it; `index` is its number within the step."""
        ...

    def forward(self, piece: Any, seed: int, num_tokens: int) -> torch.Tensor:
        """Sums of (loss, nll) over its tokens, good until the next call; `num_tokens` are those of the whole step."""
        ...

    def backward(self) -> None:
        """Add this microbatch's part of the mean gradient over the step's tokens."""
        ...

    def refresh(self) -> None:
        """Somebody other than the optimizer has changed the weights."""
        ...


def make_passes(built: Built, recipe: Recipe, plan: BatchPlan) -> Passes:
    """Ready for the first microbatch; on a GPU that takes some seconds."""
    if built.fused is None:
        return TorchPasses(built, recipe)
    return FusedPasses(built, recipe, usual_slots(plan))


@dataclass(frozen=True)
class _TorchPiece:
    index: int
    tensors: BatchTensors


class TorchPasses:
    """Through torch's own operations: any device, any model."""

    def __init__(self, built: Built, recipe: Recipe) -> None:
        self._built = built
        self._smoothing = recipe.train.label_smoothing
        self._device = built.flat.weights.device
        self._loss: torch.Tensor | None = None

    def piece(self, batch: Batch, index: int) -> _TorchPiece:
        return _TorchPiece(index, BatchTensors.of(batch, self._device))

    def forward(self, piece: _TorchPiece, seed: int, num_tokens: int) -> torch.Tensor:
        model, batch = self._built.model, piece.tensors
        torch.manual_seed(seed)
        with self._built.autocast():
            hidden = model(batch.source_ids, batch.source, batch.input_ids, batch.target)
            sums = linear_cross_entropy(hidden, model.embedding.weight, batch.labels, self._smoothing)
        self._loss = sums.loss / num_tokens
        if self._built.scale is not None:
            self._loss = self._loss * self._built.scale.value
        return torch.stack([sums.loss.detach(), sums.nll])

    def backward(self) -> None:
        assert self._loss is not None, "forward comes first"
        self._loss.backward()
        self._loss = None

    def refresh(self) -> None:
        pass


@dataclass(frozen=True)
class _PackedPiece:
    index: int
    blocks: list[torch.Tensor]  # int32, in memory that a GPU copies from by itself; one, but for full microbatches


class FusedPasses:
    """Through fused kernels, replayed from graphs: a GPU is told of a pass in one call and not in a thousand."""

    def __init__(self, built: Built, recipe: Recipe, slots: Slots) -> None:
        from dragoman.model.fused.batch import PackedBatch

        assert built.fused is not None
        self._fused = built.fused
        self._smoothing = recipe.train.label_smoothing
        self._device = built.flat.weights.device
        self._batch = PackedBatch(torch.from_numpy(empty_words(slots)).to(self._device), slots)
        self._capture()

    def piece(self, batch: Batch, index: int) -> _PackedPiece:
        sentences = Sentences(
            batch.source_ids, batch.source_lengths, batch.input_ids, batch.target_ids, batch.target_lengths
        )
        blocks = pack_all(sentences, self._batch.slots)
        return _PackedPiece(index, [torch.from_numpy(words).pin_memory() for words in blocks])

    def forward(self, piece: _PackedPiece, seed: int, num_tokens: int) -> torch.Tensor:
        """Where a microbatch takes several passes, all but the last go back at once."""
        earlier: list[torch.Tensor] = []
        for number, words in enumerate(piece.blocks):
            if number:
                earlier.append(self._sums.clone())
                self.backward()
            set_header(words.numpy(), seed + number, 1 / num_tokens)
            self._batch.words.copy_(words, non_blocking=True)
            self._forward_graph.replay()
        return torch.stack([*earlier, self._sums]).sum(0) if earlier else self._sums

    def backward(self) -> None:
        self._backward_graph.replay()

    def refresh(self) -> None:
        self._fused.refresh()

    def _capture(self) -> None:
        """Record both passes on a batch whose tokens weigh nothing: the gradient stays as it is."""
        side = torch.cuda.Stream(self._device)
        side.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(side):  # what happens only once, such as compilation, must not be recorded
            # Nor may its autograd graph live on: no name for the loss.
            self._fused.backward(self._fused.losses(self._batch, self._smoothing)[0])
        torch.cuda.current_stream(self._device).wait_stream(side)
        self._forward_graph, self._backward_graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        pool = torch.cuda.graph_pool_handle()
        with torch.cuda.graph(self._forward_graph, pool=pool):
            self._loss, self._sums = self._fused.losses(self._batch, self._smoothing)
        with torch.cuda.graph(self._backward_graph, pool=pool):
            self._fused.backward(self._loss)
