"""Word and position vectors of packed tokens, with dropout.

Shape letters: T tokens, D width, V vocabulary, P positions.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl

from dragoman.model.fused.dropout import Dropout, arguments, drops
from dragoman.model.fused.norm import NUM_WARPS, tile_of
from dragoman.model.fused.random import is_kept, site_key
from dragoman.model.fused.weight import Weight


@triton.jit(do_not_specialize=["site", "threshold"])
def embedding_forward(
    ids_ptr, first_ptr, words_ptr, positions_ptr, x_ptr, T, D, factor, seed_ptr, site, threshold, keep_scale,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    has_row = rows < T
    ids = tl.load(ids_ptr + rows, mask=has_row, other=0)
    positions = rows - tl.load(first_ptr + rows, mask=has_row, other=0)
    inside = has_row[:, None] & (columns < D)[None, :]
    words = tl.load(words_ptr + ids[:, None].to(tl.int64) * D + columns[None, :], mask=inside, other=0.0)
    x = words * factor + tl.load(positions_ptr + positions[:, None] * D + columns[None, :], mask=inside, other=0.0)
    places = rows[:, None] * D + columns[None, :]
    if DROPS:
        x = tl.where(is_kept(site_key(seed_ptr, site), places, threshold), x * keep_scale, 0.0)
    tl.store(x_ptr + places, x.to(x_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["site", "threshold"])
def embedding_backward(
    ids_ptr, dx_ptr, gradient_ptr, rows_ptr, T, D, factor, seed_ptr, site, threshold, keep_scale,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, DROPS: tl.constexpr, ADDS: tl.constexpr,
):  # fmt: skip
    """Adds to the gradients of the words, in whatever order programs come; or leaves the rows to be added by others."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    has_row = rows < T
    ids = tl.load(ids_ptr + rows, mask=has_row, other=0)
    inside = has_row[:, None] & (columns < D)[None, :]
    places = rows[:, None] * D + columns[None, :]
    dx = tl.load(dx_ptr + places, mask=inside, other=0.0).to(tl.float32) * factor
    if DROPS:
        dx = tl.where(is_kept(site_key(seed_ptr, site), places, threshold), dx * keep_scale, 0.0)
    if ADDS:
        tl.atomic_add(gradient_ptr + ids[:, None].to(tl.int64) * D + columns[None, :], dx, mask=inside, sem="relaxed")
    else:
        tl.store(rows_ptr + places, dx, mask=inside)


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        root: torch.Tensor,
        ids_T: torch.Tensor,
        first_T: torch.Tensor,
        words: Weight,
        positions_PD: torch.Tensor,
        dropout: Dropout,
        dtype: torch.dtype,
        deterministic: bool,
    ) -> torch.Tensor:
        num_tokens, width = ids_T.shape[0], words.master.shape[1]
        x_TD = torch.empty(num_tokens, width, dtype=dtype, device=ids_T.device)
        rows, block = tile_of(width)
        embedding_forward[(triton.cdiv(num_tokens, rows),)](
            ids_T, first_T, words.master, positions_PD, x_TD, num_tokens, width, math.sqrt(width),
            *arguments(dropout), ROWS=rows, BLOCK=block, DROPS=drops(dropout), num_warps=NUM_WARPS,
        )  # fmt: skip
        ctx.ids_T, ctx.words, ctx.dropout, ctx.deterministic = ids_T, words, dropout, deterministic
        return x_TD

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[None, ...]:
        dx_TD = grad_outputs[0].contiguous()
        num_tokens, width = dx_TD.shape
        rows, block = tile_of(width)
        rows_TD = torch.empty(num_tokens, width, device=dx_TD.device) if ctx.deterministic else None
        embedding_backward[(triton.cdiv(num_tokens, rows),)](
            ctx.ids_T, dx_TD, ctx.words.gradient, rows_TD, num_tokens, width, math.sqrt(width),
            *arguments(ctx.dropout), ROWS=rows, BLOCK=block, DROPS=drops(ctx.dropout), ADDS=rows_TD is None,
            num_warps=NUM_WARPS,
        )  # fmt: skip
        if rows_TD is not None:
            # Torch's own sorts the words first, and adds up each in the order of the text.
            num_words = ctx.words.gradient.shape[0]
            summed_VD = torch.ops.aten.embedding_dense_backward(rows_TD, ctx.ids_T, num_words, -1, False)
            ctx.words.gradient.add_(summed_VD)
        return (None,) * 8


def embed(
    root: torch.Tensor,
    ids_T: torch.Tensor,
    first_T: torch.Tensor,
    words: Weight,
    positions_PD: torch.Tensor,
    dropout: Dropout,
    dtype: torch.dtype,
    deterministic: bool = False,
) -> torch.Tensor:
    """Vectors of the tokens whose sentences begin at `first_T`. `root` needs a gradient and gets none: it is what a
    backward pass is looking for when it comes here."""
    return _Embedding.apply(root, ids_T, first_T, words, positions_PD, dropout, dtype, deterministic)  # type: ignore[no-any-return]
