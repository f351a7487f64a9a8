"""Attention over packed sentences: a tile of tokens and a head at once. Short sentences share a tile, and where one
tile holds all that its sentences see (nearly always) a program reads and computes everything once.

Whatever is paired (a sentence with itself, up to the token or whole; a translation with its source), every query token
sees one run of keys. A token that belongs to no sentence sees nothing and gives zeros.
Shape letters: T query tokens, S key tokens, D width of all heads, H heads, E width of a head.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from dragoman.model.fused.tiles import TILE
from dragoman.model.fused.weight import Weight

LOG2_E = math.log2(math.e)
NUM_WARPS = 4
# Registers a thread may take: fewer than the compiler would like, so that more tiles are under way at once. Measured on
# an H200 with heads of 64; wider ones need all there are.
FORWARD_REGISTERS, BACKWARD_REGISTERS, WIDEST_LIMITED = 96, 168, 64


@dataclass(frozen=True)
class Sight:
    """Who sees whom, as int32 tensors: query t sees keys [first_key, last_key), with `causal` up to its own place."""

    first_key_T: torch.Tensor
    last_key_T: torch.Tensor
    tiles: torch.Tensor  # as `tiles.cut_tiles` gives them
    causal: bool


@triton.jit
def _bounds(tiles_ptr, num_tiles):
    """Kind of this program, first and last query, first and last key."""
    tile = tiles_ptr + tl.program_id(0)
    return (
        tl.load(tile),
        tl.load(tile + num_tiles),
        tl.load(tile + 2 * num_tiles),
        tl.load(tile + 3 * num_tiles),
        tl.load(tile + 4 * num_tiles),
    )


@triton.jit
def _seen(first_ptr, last_ptr, rows, inside, columns, last_column, CAUSAL: tl.constexpr):
    """(rows, columns) that see each other, among those inside the tile."""
    first = tl.load(first_ptr + rows, mask=inside, other=2147483647)
    if CAUSAL:
        last = rows + 1
    else:
        last = tl.load(last_ptr + rows, mask=inside, other=0)
    last = tl.minimum(last, last_column)
    return (columns[None, :] >= first[:, None]) & (columns[None, :] < last[:, None])


@triton.jit
def _tile(ptr, rows, inside, stride, head, E: tl.constexpr):
    """One head's values of these rows, zeros outside."""
    places = rows[:, None] * stride + head * E + tl.arange(0, E)[None, :]
    return tl.load(ptr + places, mask=inside[:, None], other=0.0)


@triton.jit
def _put(ptr, values, rows, inside, stride, head, E: tl.constexpr):
    places = rows[:, None] * stride + head * E + tl.arange(0, E)[None, :]
    tl.store(ptr + places, values.to(ptr.dtype.element_ty), mask=inside[:, None])


@triton.jit
def attention_forward(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, first_ptr, last_ptr, tiles_ptr, num_tiles, T, q_stride, kv_stride,
    out_stride, scale_log2, E: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    kind, first_query, last_query, first_key, last_key = _bounds(tiles_ptr, num_tiles)
    if kind <= 1:
        head = tl.program_id(1)
        rows = first_query + tl.arange(0, N)
        inside = rows < last_query
        q = _tile(q_ptr, rows, inside, q_stride, head, E)
        best = tl.full([N], float("-inf"), dtype=tl.float32)
        total = tl.zeros([N], dtype=tl.float32)
        out = tl.zeros([N, E], dtype=tl.float32)
        for start in range(first_key, last_key, N):
            columns = start + tl.arange(0, N)
            k = _tile(k_ptr, columns, columns < last_key, kv_stride, head, E)
            v = _tile(v_ptr, columns, columns < last_key, kv_stride, head, E)
            score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale_log2
            seen = _seen(first_ptr, last_ptr, rows, inside, columns, last_key, CAUSAL)
            score = tl.where(seen, score, float("-inf"))
            new_best = tl.maximum(best, tl.max(score, 1))
            # A query that has seen nothing yet: any finite number keeps NaN away.
            finite = tl.where(new_best == float("-inf"), 0.0, new_best)
            p = tl.exp2(score - finite[:, None])
            decay = tl.exp2(best - finite)
            total = total * decay + tl.sum(p, 1)
            out = out * decay[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            best = new_best
        sees_any = total > 0
        out = out / tl.where(sees_any, total, 1.0)[:, None]
        lse = tl.where(sees_any, best + tl.log2(tl.where(sees_any, total, 1.0)), 0.0)
        _put(out_ptr, out, rows, inside, out_stride, head, E)
        tl.store(lse_ptr + head * T + rows, lse, mask=inside)


@triton.jit
def _weights(q, k, dout, v, lse, delta, seen, scale_log2):
    """(queries, keys): attention weights, and the gradient of the scores before their scale."""
    score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale_log2
    p = tl.where(seen, tl.exp2(score - lse[:, None]), 0.0)
    dp = tl.dot(dout, tl.trans(v), input_precision="ieee")
    return p, p * (dp - delta[:, None])


@triton.jit
def _queries(q_ptr, out_ptr, dout_ptr, lse_ptr, rows, inside, head, T, q_stride, out_stride, E: tl.constexpr):
    """What a backward pass knows of query rows."""
    q = _tile(q_ptr, rows, inside, q_stride, head, E)
    dout = _tile(dout_ptr, rows, inside, out_stride, head, E)
    out = _tile(out_ptr, rows, inside, out_stride, head, E)
    lse = tl.load(lse_ptr + head * T + rows, mask=inside, other=0.0)
    return q, dout, lse, tl.sum(dout.to(tl.float32) * out.to(tl.float32), 1)


@triton.jit
def attention_backward(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, dout_ptr, dq_ptr, dk_ptr, dv_ptr, q_sum_ptr, kv_sum_ptr, first_ptr,
    last_ptr, tiles_ptr, num_tiles, T, q_stride, kv_stride, out_stride, dq_stride, dkv_stride, scale, scale_log2,
    D: tl.constexpr, E: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """A group makes all three gradients at once; a part of a long sentence those of its queries or of its keys."""
    kind, first_query, last_query, first_key, last_key = _bounds(tiles_ptr, num_tiles)
    head = tl.program_id(1)
    dq = tl.zeros([N, E], dtype=tl.float32)
    dk = tl.zeros([N, E], dtype=tl.float32)
    dv = tl.zeros([N, E], dtype=tl.float32)
    rows = first_query + tl.arange(0, N)
    columns = first_key + tl.arange(0, N)
    if kind == 0:
        q, dout, lse, delta = _queries(
            q_ptr, out_ptr, dout_ptr, lse_ptr, rows, rows < last_query, head, T, q_stride, out_stride, E
        )
        k = _tile(k_ptr, columns, columns < last_key, kv_stride, head, E)
        v = _tile(v_ptr, columns, columns < last_key, kv_stride, head, E)
        seen = _seen(first_ptr, last_ptr, rows, rows < last_query, columns, last_key, CAUSAL)
        p, ds = _weights(q, k, dout, v, lse, delta, seen, scale_log2)
        dv = tl.dot(tl.trans(p.to(dout.dtype)), dout, input_precision="ieee")
        dk = tl.dot(tl.trans(ds.to(q.dtype)), q, input_precision="ieee")
        dq = tl.dot(ds.to(k.dtype), k, input_precision="ieee")
    elif kind == 1:
        q, dout, lse, delta = _queries(
            q_ptr, out_ptr, dout_ptr, lse_ptr, rows, rows < last_query, head, T, q_stride, out_stride, E
        )
        for start in range(first_key, last_key, N):
            some = start + tl.arange(0, N)
            k = _tile(k_ptr, some, some < last_key, kv_stride, head, E)
            v = _tile(v_ptr, some, some < last_key, kv_stride, head, E)
            seen = _seen(first_ptr, last_ptr, rows, rows < last_query, some, last_key, CAUSAL)
            _, ds = _weights(q, k, dout, v, lse, delta, seen, scale_log2)
            dq += tl.dot(ds.to(k.dtype), k, input_precision="ieee")
    elif kind == 2:
        k = _tile(k_ptr, columns, columns < last_key, kv_stride, head, E)
        v = _tile(v_ptr, columns, columns < last_key, kv_stride, head, E)
        for start in range(first_query, last_query, N):
            some = start + tl.arange(0, N)
            q, dout, lse, delta = _queries(
                q_ptr, out_ptr, dout_ptr, lse_ptr, some, some < last_query, head, T, q_stride, out_stride, E
            )
            seen = _seen(first_ptr, last_ptr, some, some < last_query, columns, last_key, CAUSAL)
            p, ds = _weights(q, k, dout, v, lse, delta, seen, scale_log2)
            dv += tl.dot(tl.trans(p.to(dout.dtype)), dout, input_precision="ieee")
            dk += tl.dot(tl.trans(ds.to(q.dtype)), q, input_precision="ieee")
    if kind <= 1:
        _put(dq_ptr, dq * scale, rows, rows < last_query, dq_stride, head, E)
    if (kind == 0) | (kind == 2):
        _put(dk_ptr, dk * scale, columns, columns < last_key, dkv_stride, head, E)
        _put(dv_ptr, dv, columns, columns < last_key, dkv_stride, head, E)
    e = tl.arange(0, E)
    tl.store(q_sum_ptr + tl.program_id(0) * D + head * E + e, tl.sum(dq, 0) * scale)
    kv_sum = kv_sum_ptr + tl.program_id(0) * 2 * D + head * E + e
    tl.store(kv_sum, tl.sum(dk, 0) * scale)
    tl.store(kv_sum + D, tl.sum(dv, 0))


def _limit(registers: int, head_width: int) -> int | None:
    return registers if head_width <= WIDEST_LIMITED else None


def _parts(q: torch.Tensor, kv: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """Queries, keys and values, which lie side by side in one tensor or in two."""
    return q.chunk(3, dim=1) if kv is None else (q, *kv.chunk(2, dim=1))


def run_forward(parts: tuple[torch.Tensor, ...], num_heads: int, sight: Sight) -> tuple[torch.Tensor, torch.Tensor]:
    """What every query gathers, and the logarithm (of 2) of what its scores sum up to."""
    q_TD, k_SD, v_SD = parts
    num_queries, width = q_TD.shape
    head_width = width // num_heads
    out_TD = torch.empty(num_queries, width, dtype=q_TD.dtype, device=q_TD.device)
    lse_HT = torch.empty(num_heads, num_queries, dtype=torch.float32, device=q_TD.device)
    num_tiles = sight.tiles.shape[1]
    attention_forward[num_tiles, num_heads](
        q_TD, k_SD, v_SD, out_TD, lse_HT, sight.first_key_T, sight.last_key_T, sight.tiles, num_tiles, num_queries,
        q_TD.stride(0), k_SD.stride(0), width, LOG2_E / math.sqrt(head_width), E=head_width, N=TILE,
        CAUSAL=sight.causal, num_warps=NUM_WARPS, num_stages=2, maxnreg=_limit(FORWARD_REGISTERS, head_width),
    )  # fmt: skip
    return out_TD, lse_HT


def run_backward(
    parts: tuple[torch.Tensor, ...],
    out_TD: torch.Tensor,
    lse_HT: torch.Tensor,
    dout_TD: torch.Tensor,
    gradients: tuple[torch.Tensor, ...],
    num_heads: int,
    sight: Sight,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Writes the gradients; partial sums of their columns, for queries and for keys with values."""
    q_TD, k_SD, v_SD = parts
    num_queries, width = q_TD.shape
    head_width, num_tiles = width // num_heads, sight.tiles.shape[1]
    q_sums, kv_sums = lse_HT.new_empty(num_tiles, width), lse_HT.new_empty(num_tiles, 2 * width)
    scale = 1 / math.sqrt(head_width)
    attention_backward[num_tiles, num_heads](
        q_TD, k_SD, v_SD, out_TD, lse_HT, dout_TD, *gradients, q_sums, kv_sums, sight.first_key_T, sight.last_key_T,
        sight.tiles, num_tiles, num_queries, q_TD.stride(0), k_SD.stride(0), width, gradients[0].stride(0),
        gradients[1].stride(0), scale, scale * LOG2_E, D=width, E=head_width, N=TILE, CAUSAL=sight.causal,
        num_warps=NUM_WARPS, num_stages=1, maxnreg=_limit(BACKWARD_REGISTERS, head_width),
    )  # fmt: skip
    return q_sums, kv_sums


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: torch.Tensor,
        kv: torch.Tensor | None,
        num_heads: int,
        sight: Sight,
        biases: tuple[Weight, Weight] | None,
    ) -> torch.Tensor:
        out_TD, lse_HT = run_forward(_parts(q, kv), num_heads, sight)
        ctx.save_for_backward(q, kv, out_TD, lse_HT)
        ctx.num_heads, ctx.sight, ctx.biases = num_heads, sight, biases
        return out_TD

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        q, kv, out_TD, lse_HT = ctx.saved_tensors
        dq, dkv = torch.empty_like(q), None if kv is None else torch.empty_like(kv)
        sums = run_backward(_parts(q, kv), out_TD, lse_HT, grad_outputs[0], _parts(dq, dkv), ctx.num_heads, ctx.sight)
        if ctx.biases is not None:
            for bias, partials in zip(ctx.biases, sums, strict=True):
                bias.leftover.add_sums(partials, [bias.gradient])
        return dq, dkv, None, None, None


def self_attention(qkv_T3D: torch.Tensor, num_heads: int, sight: Sight, bias: Weight | None = None) -> torch.Tensor:
    """(T, D) of queries, keys and values side by side; adds the gradient of the bias that is in them."""
    width = qkv_T3D.shape[1] // 3
    biases = None if bias is None else (bias.part(slice(width)), bias.part(slice(width, None)))
    return _Attention.apply(qkv_T3D, None, num_heads, sight, biases)  # type: ignore[no-any-return]


def cross_attention(
    q_TD: torch.Tensor,
    kv_S2D: torch.Tensor,
    num_heads: int,
    sight: Sight,
    biases: tuple[Weight, Weight] | None = None,
) -> torch.Tensor:
    """(T, D) of queries over keys and values side by side; adds the gradients of both biases."""
    return _Attention.apply(q_TD, kv_S2D, num_heads, sight, biases)  # type: ignore[no-any-return]
