"""The Transformer as a search runs it: the source at once, the target one token at a time. No gradients, no dropout.

Shape letters: N rows (sentences x beam), S source slots, T tokens of either, D width, F width of the feed-forward
layer, L decoder layers, X slots of the cache, V vocabulary. Products are rounded; what sublayers add to is fp32.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
import triton

from dragoman.model.fused import activation, norm
from dragoman.model.fused.attention import Sight, run_forward
from dragoman.model.fused.decoding.attention import past_attention, source_attention
from dragoman.model.fused.decoding.beam import Beams
from dragoman.model.fused.decoding.sources import SourceArrays
from dragoman.model.fused.decoding.weights import CrossPart, DecodingWeights, ForwardPart, NormWeights, SelfPart, Stack
from dragoman.model.fused.dropout import arguments
from dragoman.model.transformer import Transformer

Change = tuple[torch.Tensor, torch.Tensor | None]  # what a sublayer adds to the stream, and a bias to add with it


class Network:
    """Holds its own copy of the weights."""

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.weights = DecodingWeights(model, dtype)
        self._config = model.config
        self._cross = [part for part in self.weights.decoder.parts if isinstance(part, CrossPart)]

    def encode(self, sources: SourceArrays, source_LS2D: torch.Tensor) -> None:
        """Put the keys and values of every decoder layer in their place."""
        device = source_LS2D.device
        ids_S, places_S, first_S, last_S = torch.from_numpy(sources.tokens_4S).to(device).unbind(0)
        sight = Sight(first_S, last_S, torch.from_numpy(sources.tiles).to(device), causal=False)
        stream = self._stream(ids_S, places_S, self.weights.encoder)
        for part in self.weights.encoder.parts:
            match part:
                case SelfPart():
                    mixed_SD, _ = run_forward(part.qkv(stream.read_TD).chunk(3, dim=1), part.num_heads, sight)
                    stream.add(mixed_SD @ part.out.weight_OI.T, part.out.bias_O)
                case _:
                    stream.add(*self._feed_forward(part, stream.read_TD))  # type: ignore[arg-type]
        for part, kv_S2D in zip(self._cross, source_LS2D, strict=True):
            kv_S2D[: sources.num_slots] = part.kv(stream.read_TD)

    def logits(
        self, beams: Beams, ranges_2B: torch.Tensor, cache_LX2D: torch.Tensor, source_LS2D: torch.Tensor
    ) -> torch.Tensor:
        """(N, V) in fp32: of every row's next word, after its newest."""
        stream = self._stream(beams.words_N, beams.step_1, self.weights.decoder)
        caches, sources = iter(cache_LX2D), iter(source_LS2D)
        for part in self.weights.decoder.parts:
            match part:
                case SelfPart():
                    change = self._past(part, stream.read_TD, beams, caches)
                case CrossPart():
                    change = self._source(part, stream.read_TD, beams, ranges_2B, sources)
                case ForwardPart():
                    change = self._feed_forward(part, stream.read_TD)
            stream.add(*change)
        words_DV = self.weights.words_VD.T
        if self.dtype == torch.float32:
            return stream.read_TD @ words_DV
        # Rounded logits would tie where the model does not.
        return torch.mm(stream.read_TD, words_DV, out_dtype=torch.float32)  # type: ignore[no-any-return,call-overload]

    def _stream(self, ids_T: torch.Tensor, places_T: torch.Tensor, stack: Stack) -> "_Stream":
        words_TD = F.embedding(ids_T, self.weights.words_VD).float()
        x_TD = words_TD * math.sqrt(self._config.d_model) + self.weights.positions_PD.index_select(0, places_T)
        return _Stream(x_TD, stack.norms, self._config.norm == "pre", self.dtype)

    def _past(self, part: SelfPart, n_ND: torch.Tensor, beams: Beams, caches: Iterator[torch.Tensor]) -> Change:
        slots = (next(caches), beams.slots_PN, beams.step_1, beams.open_B)
        mixed_ND = past_attention(part.qkv(n_ND), *slots, part.num_heads)
        return mixed_ND @ part.out.weight_OI.T, part.out.bias_O

    def _source(
        self,
        part: CrossPart,
        n_ND: torch.Tensor,
        beams: Beams,
        ranges_2B: torch.Tensor,
        sources: Iterator[torch.Tensor],
    ) -> Change:
        mixed_ND = source_attention(part.q(n_ND), next(sources), ranges_2B, beams.open_B, part.num_heads)
        return mixed_ND @ part.out.weight_OI.T, part.out.bias_O

    def _feed_forward(self, part: ForwardPart, n_TD: torch.Tensor) -> Change:
        u_TF = n_TD @ part.up.weight_OI.T
        num_tokens, width = u_TF.shape
        grid = (triton.cdiv(num_tokens, activation.ROWS), triton.cdiv(width, activation.BLOCK))
        activation.activation_forward[grid](
            u_TF, part.up.bias_O, u_TF, num_tokens, width, *arguments(None), ROWS=activation.ROWS,
            BLOCK=activation.BLOCK, KIND=activation.KINDS[self._config.activation], DROPS=False,
            num_warps=activation.NUM_WARPS,
        )  # fmt: skip
        return u_TF @ part.down.weight_OI.T, part.down.bias_O


class _Stream:
    """The fp32 stream, and what the next sublayer reads of it."""

    def __init__(self, x_TD: torch.Tensor, norms: list[NormWeights], pre: bool, dtype: torch.dtype) -> None:
        self._x_TD = x_TD
        self._norms = iter(norms)
        self._pre = pre
        self._dtype = dtype
        self.read_TD = _add_norm(x_TD, None, None, next(self._norms), dtype) if pre else x_TD.to(dtype)

    def add(self, change_TD: torch.Tensor, bias_D: torch.Tensor | None) -> None:
        if self._pre:
            self.read_TD = _add_norm(self._x_TD, change_TD, bias_D, next(self._norms), self._dtype)
        else:
            self._x_TD = _add_norm(self._x_TD, change_TD, bias_D, next(self._norms), torch.float32)
            self.read_TD = self._x_TD.to(self._dtype)


def _add_norm(
    x_TD: torch.Tensor,
    change_TD: torch.Tensor | None,
    bias_D: torch.Tensor | None,
    weights: NormWeights,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Adds change and bias to x where it lies; the norm of the sum."""
    num_tokens, width = x_TD.shape
    normed_TD = torch.empty(num_tokens, width, dtype=dtype, device=x_TD.device)
    rows, block = norm.tile_of(width)
    norm.norm_forward[(triton.cdiv(num_tokens, rows),)](
        x_TD, change_TD, bias_D, weights.scale_D, weights.shift_D, x_TD, normed_TD, num_tokens, width, norm.EPSILON,
        *arguments(None), ROWS=rows, BLOCK=block, HAS_CHANGE=change_TD is not None, HAS_BIAS=bias_D is not None,
        DROPS=False, num_warps=norm.NUM_WARPS,
    )  # fmt: skip
    return normed_TD
