"""Sums over rows in two steps, each in a fixed order: programs leave partial sums, and these are folded together."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

BLOCK, BLOCK_P = 16, 128


@triton.jit
def fold_partials(
    partial_ptr, first_ptr, second_ptr, third_ptr, num_partials, stride, width,
    BLOCK: tl.constexpr, BLOCK_P: tl.constexpr, NUM_TOTALS: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(1)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    sums = tl.zeros([BLOCK_P, BLOCK], dtype=tl.float32)
    for first in range(0, num_partials, BLOCK_P):
        rows = first + tl.arange(0, BLOCK_P)
        places = rows[:, None] * stride + part * width + columns[None, :]
        sums += tl.load(partial_ptr + places, mask=(rows < num_partials)[:, None] & inside[None, :], other=0.0)
    total_ptr = first_ptr
    if NUM_TOTALS > 1:
        if part == 1:
            total_ptr = second_ptr
    if NUM_TOTALS > 2:
        if part == 2:
            total_ptr = third_ptr
    total = tl.load(total_ptr + columns, mask=inside, other=0.0)
    tl.store(total_ptr + columns, total + tl.sum(sums, 0), mask=inside)


def fold_into(partials: torch.Tensor, totals: Sequence[torch.Tensor]) -> None:
    """Add the sums of the partials' columns to one, two or three vectors of equal width that lie side by side there."""
    width = totals[0].numel()
    first, second, third = [*totals, *[totals[0]] * (3 - len(totals))]
    grid = (triton.cdiv(width, BLOCK), len(totals))
    fold_partials[grid](
        partials, first, second, third, partials.shape[0], partials.stride(0), width,
        BLOCK=BLOCK, BLOCK_P=BLOCK_P, NUM_TOTALS=len(totals),
    )  # fmt: skip
