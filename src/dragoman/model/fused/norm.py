"""Residual sum and layer norm in one pass over the tokens: x + dropout(change + bias), and its norm.

Shape letters: T tokens, D width. The sum is the stream of a pre-norm model; a post-norm model goes on with the norm.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from dragoman.model.fused.dropout import Dropout, arguments, drops
from dragoman.model.fused.random import is_kept, site_key
from dragoman.model.fused.weight import Norm, Weight
from dragoman.model.size import NORM_PROGRAMS

EPSILON = 1e-5  # torch.nn.LayerNorm's
NUM_WARPS = 4
TILE = 2_048  # elements of a program's rows together


@triton.jit
def _normalized(x, inside, D, epsilon):
    """Rows with mean 0 and variance 1, and one over their deviation."""
    mean = tl.sum(x, 1) / D
    centered = tl.where(inside, x - mean[:, None], 0.0)
    inverse = 1 / tl.sqrt(tl.sum(centered * centered, 1) / D + epsilon)
    return centered * inverse[:, None], inverse


@triton.jit(do_not_specialize=["site", "threshold"])
def norm_forward(
    x_ptr, change_ptr, bias_ptr, scale_ptr, shift_ptr, sum_ptr, normed_ptr, T, D, epsilon, seed_ptr, site,
    threshold, keep_scale, ROWS: tl.constexpr, BLOCK: tl.constexpr, HAS_CHANGE: tl.constexpr, HAS_BIAS: tl.constexpr,
    DROPS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    places = rows[:, None] * D + columns[None, :]
    inside = (rows < T)[:, None] & (columns < D)[None, :]
    x = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    if HAS_CHANGE:
        change = tl.load(change_ptr + places, mask=inside, other=0.0).to(tl.float32)
        if HAS_BIAS:
            change += tl.load(bias_ptr + columns, mask=columns < D, other=0.0)[None, :]
        if DROPS:
            change = tl.where(is_kept(site_key(seed_ptr, site), places, threshold), change * keep_scale, 0.0)
        # Normed as it is stored: a backward pass sees no other sum.
        x = (x + change).to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + places, x, mask=inside)
        x = tl.where(inside, x.to(tl.float32), 0.0)
    normalized, _ = _normalized(x, inside, D, epsilon)
    scale = tl.load(scale_ptr + columns, mask=columns < D, other=0.0)
    shift = tl.load(shift_ptr + columns, mask=columns < D, other=0.0)
    normed = normalized * scale[None, :] + shift[None, :]
    tl.store(normed_ptr + places, normed.to(normed_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["site", "threshold"])
def norm_backward(
    sum_ptr, dsum_ptr, dnormed_ptr, scale_ptr, dx_ptr, dchange_ptr, partial_ptr, T, D, epsilon, seed_ptr, site,
    threshold, keep_scale, ROWS: tl.constexpr, BLOCK: tl.constexpr, HAS_DSUM: tl.constexpr, HAS_CHANGE: tl.constexpr,
    DROPS: tl.constexpr,
):  # fmt: skip
    columns = tl.arange(0, BLOCK)
    has_column = columns < D
    scale = tl.load(scale_ptr + columns, mask=has_column, other=0.0)[None, :]
    dscale = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    dshift = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    dbias = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    key = 0
    if DROPS:
        key = site_key(seed_ptr, site)
    for first in range(tl.program_id(0) * ROWS, T, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)
        places = rows[:, None] * D + columns[None, :]
        inside = (rows < T)[:, None] & has_column[None, :]
        x = tl.load(sum_ptr + places, mask=inside, other=0.0).to(tl.float32)
        dnormed = tl.load(dnormed_ptr + places, mask=inside, other=0.0).to(tl.float32)
        normalized, inverse = _normalized(x, inside, D, epsilon)
        dscale += dnormed * normalized
        dshift += dnormed
        scaled = dnormed * scale
        along = tl.sum(scaled * normalized, 1) / D
        mean = tl.sum(scaled, 1) / D
        dx = (scaled - normalized * along[:, None] - mean[:, None]) * inverse[:, None]
        if HAS_DSUM:
            dx += tl.load(dsum_ptr + places, mask=inside, other=0.0).to(tl.float32)
        tl.store(dx_ptr + places, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        if HAS_CHANGE:
            if DROPS:
                dx = tl.where(is_kept(key, places, threshold), dx * keep_scale, 0.0)
            dbias += tl.where(inside, dx, 0.0)
            tl.store(dchange_ptr + places, dx.to(dchange_ptr.dtype.element_ty), mask=inside)
    sums = partial_ptr + tl.program_id(0) * 3 * D + columns
    tl.store(sums, tl.sum(dscale, 0), mask=has_column)
    tl.store(sums + D, tl.sum(dshift, 0), mask=has_column)
    tl.store(sums + 2 * D, tl.sum(dbias, 0), mask=has_column)


def tile_of(width: int) -> tuple[int, int]:
    """Rows and (padded) columns of a program."""
    block = triton.next_power_of_2(width)
    return max(1, TILE // block), block


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x_TD: torch.Tensor,
        change_TD: torch.Tensor | None,
        bias: Weight | None,
        norm: Norm,
        dropout: Dropout | None,
        dtype: torch.dtype,
    ) -> Any:
        num_tokens, width = x_TD.shape
        sum_TD = torch.empty_like(x_TD) if change_TD is not None else x_TD
        normed_TD = torch.empty(num_tokens, width, dtype=dtype, device=x_TD.device)
        rows, block = tile_of(width)
        norm_forward[(triton.cdiv(num_tokens, rows),)](
            x_TD, change_TD, None if bias is None else bias.master, norm.scale.master, norm.shift.master, sum_TD,
            normed_TD, num_tokens, width, EPSILON, *arguments(dropout), ROWS=rows, BLOCK=block,
            HAS_CHANGE=change_TD is not None, HAS_BIAS=bias is not None, DROPS=drops(dropout), num_warps=NUM_WARPS,
        )  # fmt: skip
        ctx.save_for_backward(sum_TD)
        ctx.bias, ctx.norm, ctx.dropout, ctx.dtype = bias, norm, dropout, dtype
        ctx.has_change = change_TD is not None
        ctx.set_materialize_grads(False)
        return (sum_TD, normed_TD) if change_TD is not None else normed_TD

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        (sum_TD,) = ctx.saved_tensors
        dsum_TD, dnormed_TD = grad_outputs if ctx.has_change else (None, grad_outputs[0])
        num_tokens, width = sum_TD.shape
        dx_TD = torch.empty_like(sum_TD)
        dchange_TD = torch.empty(sum_TD.shape, dtype=ctx.dtype, device=sum_TD.device) if ctx.has_change else None
        rows, block = tile_of(width)
        num_programs = min(triton.cdiv(num_tokens, rows), NORM_PROGRAMS)
        partials = torch.empty(num_programs, 3 * width, dtype=torch.float32, device=sum_TD.device)
        norm_backward[(num_programs,)](
            sum_TD, dsum_TD, dnormed_TD, ctx.norm.scale.master, dx_TD, dchange_TD, partials, num_tokens, width,
            EPSILON, *arguments(ctx.dropout), ROWS=rows, BLOCK=block, HAS_DSUM=dsum_TD is not None,
            HAS_CHANGE=ctx.has_change, DROPS=drops(ctx.dropout), num_warps=NUM_WARPS,
        )  # fmt: skip
        summed = (ctx.norm.scale, ctx.norm.shift, *(() if ctx.bias is None else (ctx.bias,)))
        ctx.norm.scale.leftover.add_sums(partials, [weight.gradient for weight in summed])
        return dx_TD, dchange_TD, None, None, None, None


def add_norm(
    x_TD: torch.Tensor,
    change_TD: torch.Tensor,
    bias: Weight | None,
    norm: Norm,
    dropout: Dropout | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum, in the type of x, and its norm, in the type of the change."""
    return _AddNorm.apply(x_TD, change_TD, bias, norm, dropout, change_TD.dtype)  # type: ignore[no-any-return]


def norm_only(x_TD: torch.Tensor, norm: Norm, dtype: torch.dtype) -> torch.Tensor:
    """The norm of a stream to which nothing is added yet."""
    return _AddNorm.apply(x_TD, None, None, norm, None, dtype)  # type: ignore[no-any-return]
