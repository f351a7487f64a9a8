"""The decoder one token at a time, with a key-value cache. Gives the same numbers as `Transformer.decode`.

Shape letters: N rows (sentences x beam), B sentences, K beam, P tokens decoded so far, S padded source length,
D width, H heads, E width of a head. The cache is (P, N, D): a new token is a plain write, and following the beam
copies whole rows.
"""

import torch
import torch.nn.functional as F

from dragoman.model.layout import Layout
from dragoman.model.transformer import DecoderLayer, Transformer

GROWTH = 32  # slots added to the cache when it is full


class _LayerCache:
    """Keys and values of one decoder layer."""

    def __init__(self, layer: DecoderLayer, memory_SD: torch.Tensor, source: Layout) -> None:
        attention = layer.cross_attention.sublayer
        grid = source.grid(0, len(source.lengths))
        kv = grid.pad(attention.kv(memory_SD)).view(grid.num_rows, grid.length, 2, attention.num_heads, -1)  # type: ignore[operator]
        self.source_k_BHSE, self.source_v_BHSE = (part.contiguous() for part in kv.permute(2, 0, 3, 1, 4).unbind(0))
        self.kv_P2ND: torch.Tensor | None = None

    def append(self, kv_2ND: torch.Tensor, length: int) -> torch.Tensor:
        """Store the newest keys and values; all so far as (P, 2, N, D)."""
        if self.kv_P2ND is None or length > self.kv_P2ND.shape[0]:
            grown = kv_2ND.new_empty(length + GROWTH, *kv_2ND.shape)
            if self.kv_P2ND is not None:
                grown[: length - 1] = self.kv_P2ND[: length - 1]
            self.kv_P2ND = grown
        self.kv_P2ND[length - 1] = kv_2ND
        return self.kv_P2ND[:length]

    def follow(self, rows_N: torch.Tensor, sentences_B: torch.Tensor | None, length: int) -> None:
        """Row n goes on from old row rows_N[n]; sentences that are done drop out."""
        assert self.kv_P2ND is not None
        followed = self.kv_P2ND.new_empty(length + GROWTH, 2, len(rows_N), self.kv_P2ND.shape[-1])
        torch.index_select(self.kv_P2ND[:length], 2, rows_N, out=followed[:length])
        self.kv_P2ND = followed
        if sentences_B is not None:
            self.source_k_BHSE = self.source_k_BHSE.index_select(0, sentences_B)
            self.source_v_BHSE = self.source_v_BHSE.index_select(0, sentences_B)


class IncrementalDecoder:
    """Decodes B sentences with K rows each, one token a call."""

    def __init__(self, model: Transformer, source_ids_S: torch.Tensor, source: Layout) -> None:
        self.model = model
        memory_SD = model.encode(source_ids_S, source)
        self.layers = [_LayerCache(layer, memory_SD, source) for layer in model.decoder]  # type: ignore[arg-type]
        valid_BS = source.grid(0, len(source.lengths)).valid_BL
        self.source_mask = None if valid_BS is None else valid_BS[:, None, None, :]
        self.num_sentences = len(source.lengths)
        self.length = 0

    def logits(self, ids_N: torch.Tensor) -> torch.Tensor:
        """Feed one token per row; scores of the next one, (N, V)."""
        positions_N = torch.full_like(ids_N, self.length)
        self.length += 1
        x_ND = self.model.embed(ids_N, positions_N)
        for layer, cache in zip(self.model.decoder, self.layers, strict=True):
            x_ND = self._self_attention(layer, cache, x_ND)  # type: ignore[arg-type]
            x_ND = self._cross_attention(layer, cache, x_ND)  # type: ignore[arg-type]
            x_ND = layer.feed_forward(x_ND)  # type: ignore[operator, union-attr]
        return self.model.decoder_norm(x_ND) @ self.model.embedding.weight.T

    def follow(self, rows_N: torch.Tensor, sentences_B: torch.Tensor | None) -> None:
        """Reorder the rows; with `sentences_B`, keep only those sentences."""
        for cache in self.layers:
            cache.follow(rows_N, sentences_B, self.length)
        if sentences_B is not None:
            self.num_sentences = len(sentences_B)
            if self.source_mask is not None:
                self.source_mask = self.source_mask.index_select(0, sentences_B)

    def _self_attention(self, layer: DecoderLayer, cache: _LayerCache, x_ND: torch.Tensor) -> torch.Tensor:
        residual, attention = layer.self_attention, layer.self_attention.sublayer
        q_ND, k_ND, v_ND = attention.qkv(residual.enter(x_ND)).chunk(3, dim=-1)  # type: ignore[operator]
        kv_P2ND = cache.append(torch.stack([k_ND, v_ND]), self.length)
        heads = (x_ND.shape[0], attention.num_heads, -1)
        kv_2NHPE = kv_P2ND.view(self.length, 2, *heads).permute(1, 2, 3, 0, 4)  # type: ignore[arg-type]
        o_NH1E = F.scaled_dot_product_attention(q_ND.reshape(heads)[:, :, None], kv_2NHPE[0], kv_2NHPE[1])  # type: ignore[arg-type]
        return residual.leave(x_ND, attention.out(o_NH1E.flatten(1)))  # type: ignore[operator]

    def _cross_attention(self, layer: DecoderLayer, cache: _LayerCache, x_ND: torch.Tensor) -> torch.Tensor:
        residual, attention = layer.cross_attention, layer.cross_attention.sublayer
        q_ND = attention.q(residual.enter(x_ND))  # type: ignore[operator]
        # The rows of a sentence are queries of one attention, so that its source is read once for all of them.
        q_BHKE = q_ND.view(
            self.num_sentences, -1, attention.num_heads, q_ND.shape[-1] // attention.num_heads
        ).transpose(1, 2)  # type: ignore[operator]
        o_BHKE = F.scaled_dot_product_attention(
            q_BHKE, cache.source_k_BHSE, cache.source_v_BHSE, attn_mask=self.source_mask
        )
        return residual.leave(x_ND, attention.out(o_BHKE.transpose(1, 2).reshape(x_ND.shape)))  # type: ignore[operator]
