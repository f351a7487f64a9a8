"""The training pass of a Transformer through fused kernels: the same weights and mathematics as `model.transformer`.

Shape letters: S source tokens, T target tokens, D width, F width of the feed-forward layer. Each sublayer hands on its
change without the last bias; the pass that adds it to the stream also adds the bias, drops, and norms for the next.
"""

from collections.abc import Sequence

import torch
from torch import nn

from dragoman.model.flat import FlatModel
from dragoman.model.fused.activation import activate
from dragoman.model.fused.attention import Sight, cross_attention, self_attention
from dragoman.model.fused.batch import PackedBatch
from dragoman.model.fused.dropout import Dropout
from dragoman.model.fused.embedding import embed
from dragoman.model.fused.loss import linear_cross_entropy
from dragoman.model.fused.norm import add_norm, norm_only
from dragoman.model.fused.weight import Norm, Weight, product
from dragoman.model.transformer import (
    CrossAttention,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    SelfAttention,
    Transformer,
)

Change = tuple[torch.Tensor, Weight | None]


class FusedTransformer:
    """Computes with a rounded copy of the weights, which `refresh` renews after every update."""

    def __init__(self, model: Transformer, flat: FlatModel, dtype: torch.dtype, stream: torch.dtype) -> None:
        self.model = model
        self.flat = flat
        self.dtype = dtype
        self.stream = stream  # what sublayers add to
        self.rounded = flat.weights.to(dtype)
        views = zip(
            flat.parameters, flat.views(flat.weights), flat.views(self.rounded), flat.views(flat.gradient), strict=True
        )
        self._weights = {id(parameter): Weight(*three) for parameter, *three in views}
        self._root = torch.zeros(1, device=flat.weights.device, requires_grad=True)
        self._pre = model.config.norm == "pre"
        self._sites = 0

    def refresh(self) -> None:
        """After the weights have changed."""
        self.rounded.copy_(self.flat.weights)

    def losses(self, batch: PackedBatch, smoothing: float) -> tuple[torch.Tensor, torch.Tensor]:
        """(loss to go back from, [loss, nll]), sums over the batch; gradients are scaled as the batch says."""
        self._sites = 0
        memory_SD = self._encode(batch)
        hidden_TD = self._decode(batch, memory_SD)
        words = self._weight(self.model.embedding.weight)
        labels_T = batch.part("labels")
        return linear_cross_entropy(hidden_TD, words, labels_T, batch.weights_T, batch.scale, smoothing)

    def _encode(self, batch: PackedBatch) -> torch.Tensor:
        x_SD = self._embed(batch, "source_ids", "source_first")
        layers: Sequence[EncoderLayer] = list(self.model.encoder)  # type: ignore[assignment]
        residuals = [residual for layer in layers for residual in (layer.self_attention, layer.feed_forward)]
        norms = self._norms([residual.norm for residual in residuals], self.model.encoder_norm)
        x_SD, n_SD = self._enter(x_SD, norms)
        for residual in residuals:
            match residual.sublayer:
                case SelfAttention() as part:
                    change = self._self_attention(part, n_SD, batch.among_source)
                case part:
                    change = self._feed_forward(part, n_SD, batch)  # type: ignore[arg-type]
            x_SD, n_SD = self._leave(x_SD, change, norms, batch)
        return n_SD

    def _decode(self, batch: PackedBatch, memory_SD: torch.Tensor) -> torch.Tensor:
        x_TD = self._embed(batch, "input_ids", "target_first")
        layers: Sequence[DecoderLayer] = list(self.model.decoder)  # type: ignore[assignment]
        residuals = [
            residual
            for layer in layers
            for residual in (layer.self_attention, layer.cross_attention, layer.feed_forward)
        ]
        norms = self._norms([residual.norm for residual in residuals], self.model.decoder_norm)
        x_TD, n_TD = self._enter(x_TD, norms)
        for residual in residuals:
            match residual.sublayer:
                case SelfAttention() as part:
                    change = self._self_attention(part, n_TD, batch.among_target)
                case CrossAttention() as part:
                    change = self._cross_attention(part, n_TD, memory_SD, batch.to_source)
                case part:
                    change = self._feed_forward(part, n_TD, batch)  # type: ignore[arg-type]
            x_TD, n_TD = self._leave(x_TD, change, norms, batch)
        return n_TD

    def _embed(self, batch: PackedBatch, ids: str, first: str) -> torch.Tensor:
        words = self._weight(self.model.embedding.weight)
        positions_PD: torch.Tensor = self.model.positions  # type: ignore[assignment]
        dropout = self._dropout(self.model.config.dropout, batch)
        return embed(self._root, batch.part(ids), batch.part(first), words, positions_PD, dropout, self.stream)

    def _norms(self, own: list[nn.LayerNorm], last: nn.Module) -> list[Norm]:
        """In the order of use: of pre-norm one more, since the stream is normed at its end too."""
        used = [*own, last] if self._pre else own
        return [Norm(self._weight(norm.weight), self._weight(norm.bias)) for norm in used][::-1]  # type: ignore[arg-type]

    def _enter(self, x_TD: torch.Tensor, norms: list[Norm]) -> tuple[torch.Tensor, torch.Tensor]:
        """The stream, and what the first sublayer reads of it."""
        return (x_TD, norm_only(x_TD, norms.pop(), self.dtype)) if self._pre else (x_TD, x_TD.to(self.dtype))

    def _leave(
        self, x_TD: torch.Tensor, change: Change, norms: list[Norm], batch: PackedBatch
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The stream after a sublayer, and what the next one reads of it."""
        dropout = self._dropout(self.model.config.dropout, batch)
        x_TD, n_TD = add_norm(x_TD, *change, norms.pop(), dropout)
        return (x_TD, n_TD) if self._pre else (n_TD, n_TD)

    def _self_attention(self, part: SelfAttention, n_TD: torch.Tensor, sight: Sight) -> Change:
        weight, bias = self._linear(part.qkv)
        mixed_TD = self_attention(product(n_TD, weight, bias), part.num_heads, sight, bias)
        weight, bias = self._linear(part.out)
        return product(mixed_TD, weight), bias

    def _cross_attention(
        self, part: CrossAttention, n_TD: torch.Tensor, memory_SD: torch.Tensor, sight: Sight
    ) -> Change:
        q_weight, q_bias = self._linear(part.q)
        kv_weight, kv_bias = self._linear(part.kv)
        biases = None if q_bias is None or kv_bias is None else (q_bias, kv_bias)
        q_TD, kv_S2D = product(n_TD, q_weight, q_bias), product(memory_SD, kv_weight, kv_bias)
        mixed_TD = cross_attention(q_TD, kv_S2D, part.num_heads, sight, biases)
        weight, bias = self._linear(part.out)
        return product(mixed_TD, weight), bias

    def _feed_forward(self, part: FeedForward, n_TD: torch.Tensor, batch: PackedBatch) -> Change:
        weight, bias = self._linear(part.up)
        assert bias is not None, "feed-forward layers have biases"
        dropout = self._dropout(part.dropout, batch)
        h_TF = activate(product(n_TD, weight), bias, self.model.config.activation, dropout)
        weight, bias = self._linear(part.down)
        return product(h_TF, weight), bias

    def _dropout(self, rate: float, batch: PackedBatch) -> Dropout:
        self._sites += 1
        return Dropout(rate, self._sites, batch.seed)

    def _linear(self, linear: nn.Linear) -> tuple[Weight, Weight | None]:
        return self._weight(linear.weight), None if linear.bias is None else self._weight(linear.bias)

    def _weight(self, parameter: torch.Tensor) -> Weight:
        return self._weights[id(parameter)]
