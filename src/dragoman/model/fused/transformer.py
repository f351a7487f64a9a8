"""The training pass of a Transformer through fused kernels: the same weights and mathematics as `model.transformer`.

Shape letters: S source tokens, T target tokens, D width, F width of the feed-forward layer. Each sublayer hands on its
change without the last bias; the pass that adds it to the stream also adds the bias, drops, and norms for the next.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from dragoman.model.flat import FlatModel
from dragoman.model.fused.activation import activate
from dragoman.model.fused.attention import Sight, cross_attention, self_attention
from dragoman.model.fused.batch import PackedBatch
from dragoman.model.fused.dropout import Dropout
from dragoman.model.fused.embedding import embed
from dragoman.model.fused.leftover import Leftover
from dragoman.model.fused.loss import linear_cross_entropy
from dragoman.model.fused.norm import add_norm, norm_only
from dragoman.model.fused.weight import Norm, Weight, product
from dragoman.model.transformer import CrossAttention, FeedForward, Residual, SelfAttention, Transformer

Change = tuple[torch.Tensor, Weight | None]
DECODER_SITES = 1_000_000  # where dropout of the decoder begins to count


class FusedTransformer:
    """Computes with a rounded copy of the weights, which `refresh` renews after every update.

    With `recomputes`, a layer keeps only what enters it and is computed again in the backward pass: a third more work
    for a fraction of the memory. With `deterministic`, no sum depends on which program comes first.
    """

    def __init__(
        self,
        model: Transformer,
        flat: FlatModel,
        dtype: torch.dtype,
        recomputes: bool = False,
        deterministic: bool = False,
    ) -> None:
        self.model = model
        self.flat = flat
        self.dtype = dtype
        self.rounded = flat.weights.to(dtype)
        views = zip(
            flat.parameters, flat.views(flat.weights), flat.views(self.rounded), flat.views(flat.gradient), strict=True
        )
        self._leftover = Leftover(flat.weights.device)
        self._weights = {id(parameter): Weight(*three, leftover=self._leftover) for parameter, *three in views}
        self._root = torch.zeros(1, device=flat.weights.device, requires_grad=True)
        self._is_pre = model.config.norm == "pre"
        self._recomputes = recomputes
        self._deterministic = deterministic

    def refresh(self) -> None:
        """After the weights have changed."""
        self.rounded.copy_(self.flat.weights)

    def backward(self, loss: torch.Tensor) -> None:
        """From what `losses` gave. Call it, not the one of the tensor: that one leaves work undone."""
        loss.backward()
        self._leftover.finish()

    def losses(self, batch: PackedBatch, smoothing: float) -> tuple[torch.Tensor, torch.Tensor]:
        """(loss to go back from, [loss, nll]), sums over the batch; gradients are scaled as the batch says."""
        model = self.model
        x_SD = self._embed(batch, "source_ids", "source_first", 0)
        memory_SD = self._stack(x_SD, None, model.encoder, model.encoder_norm, batch, 1)
        x_TD = self._embed(batch, "input_ids", "target_first", DECODER_SITES)
        hidden_TD = self._stack(x_TD, memory_SD, model.decoder, model.decoder_norm, batch, DECODER_SITES + 1)
        words = self._weight(model.embedding.weight)
        labels_T = batch.part("labels")
        return linear_cross_entropy(hidden_TD, words, labels_T, batch.weights_T, batch.scale, smoothing)

    def _embed(self, batch: PackedBatch, ids: str, first: str, site: int) -> torch.Tensor:
        return embed(
            self._root,
            batch.part(ids),
            batch.part(first),
            self._weight(self.model.embedding.weight),
            self.model.positions,  # type: ignore[arg-type]
            Dropout(self.model.config.dropout, site, batch.seed),
            self.dtype,
            self._deterministic,
        )

    def _stack(
        self,
        x_TD: torch.Tensor,
        memory_SD: torch.Tensor | None,
        layers: nn.ModuleList,
        last_norm: nn.Module,
        batch: PackedBatch,
        site: int,
    ) -> torch.Tensor:
        """All layers of the encoder, or, with a memory, of the decoder; what comes out normed."""
        residuals: list[list[Residual]] = [list(layer.children()) for layer in layers]  # type: ignore[arg-type]
        own_norms = [residual.norm for layer in residuals for residual in layer]
        # In the order of use: of pre-norm the first comes before all layers, and one more at the end.
        norms = [self._norm(norm) for norm in ([*own_norms, last_norm] if self._is_pre else own_norms)]
        n_TD = norm_only(x_TD, norms.pop(0), self.dtype) if self._is_pre else x_TD
        for layer in residuals:
            own, norms = norms[: len(layer)], norms[len(layer) :]
            context = (memory_SD, layer, own, batch, site)
            if self._recomputes:
                x_TD, n_TD = checkpoint(  # type: ignore[misc]
                    self._layer, x_TD, n_TD, *context, use_reentrant=False, preserve_rng_state=False
                )
            else:
                x_TD, n_TD = self._layer(x_TD, n_TD, *context)
            site += 2 * len(layer)
        return n_TD

    def _layer(
        self,
        x_TD: torch.Tensor,
        n_TD: torch.Tensor,
        memory_SD: torch.Tensor | None,
        residuals: Sequence[Residual],
        norms: Sequence[Norm],
        batch: PackedBatch,
        site: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The stream after a layer, and what the next one reads of it. Two sites of dropout for each sublayer."""
        for number, (residual, norm) in enumerate(zip(residuals, norms, strict=True)):
            own_site = site + 2 * number
            change_TD, bias = self._change(residual.sublayer, n_TD, memory_SD, batch, own_site + 1)
            x_TD, n_TD = add_norm(x_TD, change_TD, bias, norm, Dropout(residual.dropout, own_site, batch.seed))
            if not self._is_pre:
                x_TD = n_TD
        return x_TD, n_TD

    def _change(
        self, part: nn.Module, n_TD: torch.Tensor, memory_SD: torch.Tensor | None, batch: PackedBatch, site: int
    ) -> Change:
        match part:
            case SelfAttention():
                return self._self_attention(part, n_TD, batch.among_source if memory_SD is None else batch.among_target)
            case CrossAttention():
                assert memory_SD is not None, "only a decoder looks at the source"
                return self._cross_attention(part, n_TD, memory_SD, batch.to_source)
            case FeedForward():
                return self._feed_forward(part, n_TD, Dropout(part.dropout, site, batch.seed))
            case _:
                raise AssertionError(f"no such sublayer: {part}")

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

    def _feed_forward(self, part: FeedForward, n_TD: torch.Tensor, dropout: Dropout) -> Change:
        weight, bias = self._linear(part.up)
        assert bias is not None, "feed-forward layers have biases"
        h_TF = activate(product(n_TD, weight), bias, self.model.config.activation, dropout)
        weight, bias = self._linear(part.down)
        return product(h_TF, weight), bias

    def _norm(self, norm: nn.Module) -> Norm:
        return Norm(self._weight(norm.weight), self._weight(norm.bias))  # type: ignore[arg-type]

    def _linear(self, linear: nn.Linear) -> tuple[Weight, Weight | None]:
        return self._weight(linear.weight), None if linear.bias is None else self._weight(linear.bias)

    def _weight(self, parameter: torch.Tensor) -> Weight:
        return self._weights[id(parameter)]
