"""The Transformer, over packed tokens: no padding is ever computed outside attention. Knows no ranks and no text.

Shape letters: S source tokens, T target tokens, D width of the model, H heads, E width of a head, F width of the
feed-forward layer, V vocabulary. Special ids, position tables and the decoder's start are those that Hugging Face's
M2M100 (pre-norm) and Marian (post-norm) and CTranslate2 express exactly.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.config import ModelConfig
from dragoman.model.attention import Pairing, attend
from dragoman.model.dropout import dropout
from dragoman.model.layout import Layout

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


def position_table(config: ModelConfig) -> torch.Tensor:
    """Sines in the first half, cosines in the second, by the formula of the stock class that matches the norm."""
    half = config.d_model // 2
    if config.norm == "pre":  # M2M100: first position 2, frequencies down to exactly 1/10,000
        first, step = 2, math.log(10_000) / max(half - 1, 1)
    else:  # Marian, and the original paper
        first, step = 0, math.log(10_000) / half
    positions = torch.arange(first, first + config.max_positions, dtype=torch.float64)
    angles = positions[:, None] * torch.exp(torch.arange(half, dtype=torch.float64) * -step)
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


class SelfAttention(nn.Module):
    """Queries, keys and values from one product."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model, bias=config.attention_bias)
        self.out = nn.Linear(config.d_model, config.d_model, bias=config.attention_bias)

    def forward(self, x_TD: torch.Tensor, pairing: Pairing) -> torch.Tensor:
        q_THE, k_THE, v_THE = self.qkv(x_TD).view(x_TD.shape[0], 3, self.num_heads, -1).unbind(1)
        return self.out(attend(q_THE, k_THE, v_THE, pairing).flatten(1))


class CrossAttention(nn.Module):
    """Queries from the target, keys and values from the encoded source."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.q = nn.Linear(config.d_model, config.d_model, bias=config.attention_bias)
        self.kv = nn.Linear(config.d_model, 2 * config.d_model, bias=config.attention_bias)
        self.out = nn.Linear(config.d_model, config.d_model, bias=config.attention_bias)

    def forward(self, x_TD: torch.Tensor, memory_SD: torch.Tensor, pairing: Pairing) -> torch.Tensor:
        q_THE = self.q(x_TD).view(x_TD.shape[0], self.num_heads, -1)
        k_SHE, v_SHE = self.kv(memory_SD).view(memory_SD.shape[0], 2, self.num_heads, -1).unbind(1)
        return self.out(attend(q_THE, k_SHE, v_SHE, pairing).flatten(1))


class FeedForward(nn.Module):
    """Two products with an activation between."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = config.ffn_dropout
        self.up = nn.Linear(config.d_model, config.d_ffn)
        self.down = nn.Linear(config.d_ffn, config.d_model)

    def forward(self, x_TD: torch.Tensor) -> torch.Tensor:
        h_TF = self.activation(self.up(x_TD))
        return self.down(dropout(h_TF, self.dropout, self.training))


class Residual(nn.Module):
    """Norm and dropout around a sublayer: norm before it (pre) or after the sum (post)."""

    def __init__(self, config: ModelConfig, sublayer: nn.Module) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.dropout = config.dropout
        self.norm = nn.LayerNorm(config.d_model)
        self.sublayer = sublayer

    def enter(self, x_TD: torch.Tensor) -> torch.Tensor:
        return self.norm(x_TD) if self.pre else x_TD

    def leave(self, x_TD: torch.Tensor, change_TD: torch.Tensor) -> torch.Tensor:
        sum_TD = x_TD + dropout(change_TD, self.dropout, self.training)
        return sum_TD if self.pre else self.norm(sum_TD)

    def forward(self, x_TD: torch.Tensor, *context: object) -> torch.Tensor:
        return self.leave(x_TD, self.sublayer(self.enter(x_TD), *context))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = Residual(config, SelfAttention(config))
        self.feed_forward = Residual(config, FeedForward(config))

    def forward(self, x_SD: torch.Tensor, among_source: Pairing) -> torch.Tensor:
        return self.feed_forward(self.self_attention(x_SD, among_source))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = Residual(config, SelfAttention(config))
        self.cross_attention = Residual(config, CrossAttention(config))
        self.feed_forward = Residual(config, FeedForward(config))

    def forward(
        self, x_TD: torch.Tensor, memory_SD: torch.Tensor, among_target: Pairing, to_source: Pairing
    ) -> torch.Tensor:
        x_TD = self.self_attention(x_TD, among_target)
        x_TD = self.cross_attention(x_TD, memory_SD, to_source)
        return self.feed_forward(x_TD)


class Transformer(nn.Module):
    """Encoder and decoder with one embedding for source, target and output."""

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.recomputes = False  # in training: whether a layer keeps only what enters it
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_encoder_layers))
        pre = config.norm == "pre"
        # In the order of use: gradients leave from the end, and one that is late holds back those beside it.
        self.encoder_norm = nn.LayerNorm(config.d_model) if pre else nn.Identity()
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.decoder_norm = nn.LayerNorm(config.d_model) if pre else nn.Identity()
        self.register_buffer("positions", position_table(config), persistent=False)

    def embed(self, ids_T: torch.Tensor, positions_T: torch.Tensor) -> torch.Tensor:
        x_TD = self.embedding(ids_T) * math.sqrt(self.config.d_model) + self.positions[positions_T]  # type: ignore[index]
        return dropout(x_TD, self.config.dropout, self.training)

    def encode(self, source_ids_S: torch.Tensor, source: Layout) -> torch.Tensor:
        """Encoded source, (S, D)."""
        x_SD = self.embed(source_ids_S, source.positions_T)
        among_source = Pairing(source, source, causal=False)
        for layer in self.encoder:
            x_SD = self._computed(layer, x_SD, among_source)
        return self.encoder_norm(x_SD)

    def decode(
        self, input_ids_T: torch.Tensor, target: Layout, memory_SD: torch.Tensor, source: Layout
    ) -> torch.Tensor:
        """Last hidden states, (T, D); `loss` and `search` multiply them with the embedding."""
        x_TD = self.embed(input_ids_T, target.positions_T)
        among_target = Pairing(target, target, causal=True)
        to_source = Pairing(target, source, causal=False)
        for layer in self.decoder:
            x_TD = self._computed(layer, x_TD, memory_SD, among_target, to_source)
        return self.decoder_norm(x_TD)

    def _computed(self, layer: nn.Module, *inputs: object) -> torch.Tensor:
        if not (self.recomputes and self.training):
            return layer(*inputs)
        from torch.utils.checkpoint import checkpoint  # it imports a compiler, which takes a second

        return checkpoint(layer, *inputs, use_reentrant=False)  # type: ignore[return-value]

    def forward(
        self, source_ids_S: torch.Tensor, source: Layout, input_ids_T: torch.Tensor, target: Layout
    ) -> torch.Tensor:
        return self.decode(input_ids_T, target, self.encode(source_ids_S, source), source)


def initialize(model: Transformer, seed: int) -> None:
    """Xavier for every projection on its own (fused ones included), small embeddings, zero biases."""
    generator = torch.Generator().manual_seed(seed)
    d_model = model.config.d_model
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)
            elif parameter is model.embedding.weight:
                parameter.normal_(0, d_model**-0.5, generator=generator)
            else:
                num_fused = 3 if ".qkv." in name else 2 if ".kv." in name else 1
                for part in parameter.chunk(num_fused):
                    nn.init.xavier_uniform_(part, generator=generator)
