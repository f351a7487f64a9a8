"""Attention of the newest token of every row: over its own past in the cache, and over its source.

How far decoding has come lies in device memory, so that one graph serves every step. Rows of sentences that are done
cost next to nothing: they get zeros.
Shape letters: N rows (sentences x beam), B sentences, P positions, X slots of the cache, S source tokens, D width of
all heads, E width of a head.
"""

import math

import torch
import triton
import triton.language as tl

LOG2_E = math.log2(math.e)
PAST_BLOCK, PAST_WARPS = 32, 1
SOURCE_BLOCK, SOURCE_WARPS = 32, 2
LEAST_ROWS = 16  # of a matrix product


@triton.jit(do_not_specialize=["num_rows", "beam"])
def past_attention_forward(
    qkv_ptr, cache_ptr, slots_ptr, step_ptr, open_ptr, out_ptr, num_rows, beam, scale_log2,
    D: tl.constexpr, E: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row and head a program: stores its new key and value, which only it sees in this step."""
    row = tl.program_id(0)
    e = tl.program_id(1) * E + tl.arange(0, E)
    if tl.load(open_ptr + row // beam) == 0:
        tl.store(out_ptr + row * D + e, tl.zeros([E], dtype=out_ptr.dtype.element_ty))
    else:
        step = tl.load(step_ptr)
        newest = qkv_ptr + row * 3 * D + e
        q = tl.load(newest).to(tl.float32) * scale_log2
        new_k = tl.load(newest + D)
        new_v = tl.load(newest + 2 * D)
        own = cache_ptr + (step * num_rows + row) * 2 * D + e
        tl.store(own, new_k)
        tl.store(own + D, new_v)
        best = tl.sum(q * new_k.to(tl.float32), 0)
        total = 1.0
        out = new_v.to(tl.float32)
        for first in range(0, step, BLOCK):
            places = first + tl.arange(0, BLOCK)
            inside = places < step
            slots = tl.load(slots_ptr + places * num_rows + row, mask=inside, other=0)
            keys = cache_ptr + slots.to(tl.int64)[:, None] * 2 * D + e[None, :]
            k = tl.load(keys, mask=inside[:, None], other=0.0).to(tl.float32)
            v = tl.load(keys + D, mask=inside[:, None], other=0.0).to(tl.float32)
            score = tl.where(inside, tl.sum(k * q[None, :], 1), float("-inf"))
            new_best = tl.maximum(best, tl.max(score, 0))
            p = tl.exp2(score - new_best)
            decay = tl.exp2(best - new_best)
            total = total * decay + tl.sum(p, 0)
            out = out * decay + tl.sum(p[:, None] * v, 0)
            best = new_best
        tl.store(out_ptr + row * D + e, (out / total).to(out_ptr.dtype.element_ty))


@triton.jit(do_not_specialize=["beam"])
def source_attention_forward(
    q_ptr, kv_ptr, first_ptr, last_ptr, open_ptr, out_ptr, beam, scale_log2,
    D: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One sentence and head a program: its source is read once for all beams."""
    sentence = tl.program_id(0)
    e = tl.program_id(1) * E + tl.arange(0, E)
    beams = tl.arange(0, ROWS)
    has_beam = (beams < beam)[:, None]
    places = (sentence * beam + beams)[:, None] * D + e[None, :]
    if tl.load(open_ptr + sentence) == 0:
        tl.store(out_ptr + places, tl.zeros([ROWS, E], dtype=out_ptr.dtype.element_ty), mask=has_beam)
    else:
        q = tl.load(q_ptr + places, mask=has_beam, other=0.0)
        last = tl.load(last_ptr + sentence)
        best = tl.full([ROWS], float("-inf"), dtype=tl.float32)
        total = tl.zeros([ROWS], dtype=tl.float32)
        out = tl.zeros([ROWS, E], dtype=tl.float32)
        for start in range(tl.load(first_ptr + sentence), last, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            inside = columns < last
            keys = kv_ptr + columns.to(tl.int64)[:, None] * 2 * D + e[None, :]
            k = tl.load(keys, mask=inside[:, None], other=0.0)
            v = tl.load(keys + D, mask=inside[:, None], other=0.0)
            score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale_log2
            score = tl.where(inside[None, :], score, float("-inf"))
            new_best = tl.maximum(best, tl.max(score, 1))
            p = tl.exp2(score - new_best[:, None])
            decay = tl.exp2(best - new_best)
            total = total * decay + tl.sum(p, 1)
            out = out * decay[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            best = new_best
        tl.store(out_ptr + places, (out / total[:, None]).to(out_ptr.dtype.element_ty), mask=has_beam)


def past_attention(
    qkv_N3D: torch.Tensor,
    cache_X2D: torch.Tensor,
    slots_PN: torch.Tensor,
    step_1: torch.Tensor,
    open_B: torch.Tensor,
    num_heads: int,
) -> torch.Tensor:
    """(N, D) over positions 0..step; the newest is put into slot step x N + row of the cache."""
    num_rows, width = qkv_N3D.shape[0], qkv_N3D.shape[1] // 3
    head_width = width // num_heads
    out_ND = torch.empty(num_rows, width, dtype=qkv_N3D.dtype, device=qkv_N3D.device)
    past_attention_forward[num_rows, num_heads](
        qkv_N3D, cache_X2D, slots_PN, step_1, open_B, out_ND, num_rows, num_rows // open_B.shape[0],
        LOG2_E / math.sqrt(head_width), D=width, E=head_width, BLOCK=PAST_BLOCK, num_warps=PAST_WARPS,
    )  # fmt: skip
    return out_ND


def source_attention(
    q_ND: torch.Tensor, kv_S2D: torch.Tensor, ranges_2B: torch.Tensor, open_B: torch.Tensor, num_heads: int
) -> torch.Tensor:
    """(N, D) over the tokens [first, last) of each row's source."""
    num_rows, width = q_ND.shape
    head_width, beam = width // num_heads, num_rows // open_B.shape[0]
    out_ND = torch.empty_like(q_ND)
    source_attention_forward[open_B.shape[0], num_heads](
        q_ND, kv_S2D, ranges_2B[0], ranges_2B[1], open_B, out_ND, beam, LOG2_E / math.sqrt(head_width), D=width,
        E=head_width, ROWS=max(LEAST_ROWS, triton.next_power_of_2(beam)), BLOCK=SOURCE_BLOCK,
        num_warps=SOURCE_WARPS, num_stages=2,
    )  # fmt: skip
    return out_ND
