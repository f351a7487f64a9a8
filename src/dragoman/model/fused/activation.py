"""Bias, activation and dropout of the feed-forward layer in one pass. Shape letters: T tokens, F width of the layer."""

from typing import Any

import torch
import triton
import triton.language as tl

from dragoman.model.fused.dropout import Dropout, arguments, drops
from dragoman.model.fused.random import is_kept, site_key
from dragoman.model.fused.weight import Weight
from dragoman.model.size import ACTIVATION_PROGRAMS

ROWS, BLOCK, NUM_WARPS = 8, 512, 4
KINDS = {"relu": 0, "gelu": 1, "swish": 2}


@triton.jit
def _activated(u, KIND: tl.constexpr):
    if KIND == 0:
        return tl.maximum(u, 0.0)
    elif KIND == 1:
        return u * 0.5 * (1 + tl.erf(u * 0.7071067811865476))
    else:
        return u * tl.sigmoid(u)


@triton.jit
def _slope(u, KIND: tl.constexpr):
    if KIND == 1:
        density = 0.3989422804014327 * tl.exp(-0.5 * u * u)
        return 0.5 * (1 + tl.erf(u * 0.7071067811865476)) + u * density
    else:
        s = tl.sigmoid(u)
        return s * (1 + u * (1 - s))


@triton.jit(do_not_specialize=["site", "threshold"])
def activation_forward(
    u_ptr, bias_ptr, h_ptr, T, F, seed_ptr, site, threshold, keep_scale,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, KIND: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    places = rows[:, None] * F + columns[None, :]
    inside = (rows < T)[:, None] & (columns < F)[None, :]
    bias = tl.load(bias_ptr + columns, mask=columns < F, other=0.0)
    h = _activated(tl.load(u_ptr + places, mask=inside, other=0.0).to(tl.float32) + bias[None, :], KIND)
    if DROPS:
        h = tl.where(is_kept(site_key(seed_ptr, site), places, threshold), h * keep_scale, 0.0)
    tl.store(h_ptr + places, h.to(h_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["site", "threshold"])
def activation_backward(
    saved_ptr, bias_ptr, dh_ptr, du_ptr, partial_ptr, T, F, seed_ptr, site, threshold, keep_scale,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, KIND: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    has_column = columns < F
    bias = tl.load(bias_ptr + columns, mask=has_column, other=0.0)
    dbias = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    key = 0
    if DROPS:
        key = site_key(seed_ptr, site)
    for first in range(tl.program_id(0) * ROWS, T, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)
        places = rows[:, None] * F + columns[None, :]
        inside = (rows < T)[:, None] & has_column[None, :]
        saved = tl.load(saved_ptr + places, mask=inside, other=0.0).to(tl.float32)
        du = tl.load(dh_ptr + places, mask=inside, other=0.0).to(tl.float32) * keep_scale
        if KIND == 0:
            # What was dropped is zero, as is what was cut off: the output itself tells where gradients pass.
            du = tl.where(saved > 0, du, 0.0)
        else:
            du = tl.where(inside, du * _slope(saved + bias[None, :], KIND), 0.0)
            if DROPS:
                du = tl.where(is_kept(key, places, threshold), du, 0.0)
        dbias += du
        tl.store(du_ptr + places, du.to(du_ptr.dtype.element_ty), mask=inside)
    tl.store(partial_ptr + tl.program_id(0) * F + columns, tl.sum(dbias, 0), mask=has_column)


class _Activation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u_TF: torch.Tensor, bias: Weight, kind: int, dropout: Dropout) -> torch.Tensor:
        num_tokens, width = u_TF.shape
        h_TF = torch.empty_like(u_TF)
        grid = (triton.cdiv(num_tokens, ROWS), triton.cdiv(width, BLOCK))
        activation_forward[grid](
            u_TF, bias.master, h_TF, num_tokens, width, *arguments(dropout), ROWS=ROWS, BLOCK=BLOCK, KIND=kind,
            DROPS=drops(dropout), num_warps=NUM_WARPS,
        )  # fmt: skip
        ctx.save_for_backward(h_TF if kind == KINDS["relu"] else u_TF)
        ctx.bias, ctx.kind, ctx.dropout = bias, kind, dropout
        return h_TF

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (saved_TF,) = ctx.saved_tensors
        num_tokens, width = saved_TF.shape
        du_TF = torch.empty_like(saved_TF)
        num_partials = min(triton.cdiv(num_tokens, ROWS), ACTIVATION_PROGRAMS)
        partials = torch.empty(num_partials, width, dtype=torch.float32, device=saved_TF.device)
        activation_backward[num_partials, triton.cdiv(width, BLOCK)](
            saved_TF, ctx.bias.master, grad_outputs[0], du_TF, partials, num_tokens, width, *arguments(ctx.dropout),
            ROWS=ROWS, BLOCK=BLOCK, KIND=ctx.kind, DROPS=drops(ctx.dropout), num_warps=NUM_WARPS,
        )  # fmt: skip
        ctx.bias.leftover.add_sums(partials, [ctx.bias.gradient])
        return du_TF, None, None, None


def activate(u_TF: torch.Tensor, bias: Weight, name: str, dropout: Dropout) -> torch.Tensor:
    """dropout(activation(u + bias)); adds the bias's gradient."""
    return _Activation.apply(u_TF, bias, KINDS[name], dropout)  # type: ignore[no-any-return]
