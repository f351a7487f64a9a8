"""A model's weights as decoding reads them: a copy at places that never change, so that a graph may know them.

Matrices are rounded, and so are the biases that products add; norms and all other biases stay fp32.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from dragoman.model.transformer import CrossAttention, FeedForward, Residual, SelfAttention, Transformer

ROUNDED_BIASES = (".qkv.bias", ".q.bias", ".kv.bias")


@dataclass(frozen=True)
class Linear:
    """A product; who takes its result adds the bias unless that is rounded too."""

    weight_OI: torch.Tensor
    bias_O: torch.Tensor | None

    def __call__(self, x_TI: torch.Tensor) -> torch.Tensor:
        """With the bias."""
        w_IO = self.weight_OI.T
        return x_TI @ w_IO if self.bias_O is None else torch.addmm(self.bias_O, x_TI, w_IO)


@dataclass(frozen=True)
class NormWeights:
    """Of a layer norm."""

    scale_D: torch.Tensor
    shift_D: torch.Tensor


@dataclass(frozen=True)
class SelfPart:
    num_heads: int
    qkv: Linear
    out: Linear


@dataclass(frozen=True)
class CrossPart:
    num_heads: int
    q: Linear
    kv: Linear
    out: Linear


@dataclass(frozen=True)
class ForwardPart:
    up: Linear
    down: Linear


Part = SelfPart | CrossPart | ForwardPart


@dataclass(frozen=True)
class Stack:
    """Sublayers and norms, both in the order of use: of pre-norm one norm more, at the end of the stream."""

    parts: list[Part]
    norms: list[NormWeights]


class DecodingWeights:
    """Follows the model only when told to `refresh`; before that it holds nothing."""

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self._names = {id(parameter): name for name, parameter in model.named_parameters()}
        self._copies = {
            name: torch.empty_like(parameter, dtype=dtype if _is_rounded(name, parameter) else torch.float32)
            for name, parameter in model.named_parameters()
        }
        self.words_VD = self._copy(model.embedding.weight)
        self.positions_PD: torch.Tensor = model.positions  # type: ignore[assignment]
        encoder = (r for layer in model.encoder for r in (layer.self_attention, layer.feed_forward))
        decoder = (
            r for layer in model.decoder for r in (layer.self_attention, layer.cross_attention, layer.feed_forward)
        )
        self.encoder = self._stack(encoder, model.encoder_norm)  # type: ignore[arg-type]
        self.decoder = self._stack(decoder, model.decoder_norm)  # type: ignore[arg-type]

    def refresh(self, model: Transformer) -> None:
        """Always all of them: kernels that update weights leave no trace that would tell whether they did."""
        for name, parameter in model.named_parameters():
            self._copies[name].copy_(parameter)

    def _stack(self, residuals: Iterable[Residual], last: nn.Module) -> Stack:
        residuals = list(residuals)
        norms: list[nn.Module] = [residual.norm for residual in residuals]
        if isinstance(last, nn.LayerNorm):
            norms.append(last)
        return Stack([self._part(residual.sublayer) for residual in residuals], [self._norm(norm) for norm in norms])

    def _part(self, sublayer: nn.Module) -> Part:
        match sublayer:
            case SelfAttention() as part:
                return SelfPart(part.num_heads, self._linear(part.qkv), self._linear(part.out))
            case CrossAttention() as part:
                return CrossPart(part.num_heads, *(self._linear(each) for each in (part.q, part.kv, part.out)))
            case FeedForward() as part:
                return ForwardPart(self._linear(part.up), self._linear(part.down))
            case other:
                raise AssertionError(f"no sublayer of a Transformer: {other}")

    def _norm(self, norm: nn.Module) -> NormWeights:
        return NormWeights(self._copy(norm.weight), self._copy(norm.bias))  # type: ignore[arg-type]

    def _linear(self, linear: nn.Linear) -> Linear:
        return Linear(self._copy(linear.weight), None if linear.bias is None else self._copy(linear.bias))

    def _copy(self, parameter: torch.Tensor) -> torch.Tensor:
        return self._copies[self._names[id(parameter)]]


def _is_rounded(name: str, parameter: torch.Tensor) -> bool:
    return parameter.dim() > 1 or name.endswith(ROUNDED_BIASES)
