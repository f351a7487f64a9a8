"""Sums over rows in two steps, each in a fixed order: programs leave partial sums, and these are folded together.

All that a backward pass has left are folded by one kernel, which finds them by a table of addresses: eighty small
kernels took four times as long.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

BLOCK, BLOCK_P, NUM_WARPS = 32, 64, 4


@triton.jit
def fold_partials(table_ptr, BLOCK: tl.constexpr, BLOCK_P: tl.constexpr):
    entry = table_ptr + tl.program_id(1) * 5
    width = tl.load(entry + 4)
    if tl.program_id(0) * BLOCK < width:
        partial_ptr = tl.load(entry).to(tl.pointer_type(tl.float32))
        total_ptr = tl.load(entry + 1).to(tl.pointer_type(tl.float32))
        num_partials = tl.load(entry + 2)
        stride = tl.load(entry + 3)
        columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = columns < width
        sums = tl.zeros([BLOCK_P, BLOCK], dtype=tl.float32)
        for first in range(0, num_partials, BLOCK_P):
            rows = first + tl.arange(0, BLOCK_P)
            places = rows[:, None] * stride + columns[None, :]
            sums += tl.load(partial_ptr + places, mask=(rows < num_partials)[:, None] & inside[None, :], other=0.0)
        total = tl.load(total_ptr + columns, mask=inside, other=0.0)
        tl.store(total_ptr + columns, total + tl.sum(sums, 0), mask=inside)


def table_of(sums: Sequence[tuple[torch.Tensor, Sequence[torch.Tensor]]]) -> torch.Tensor:
    """For `fold`: partial sums, and the vectors of equal width that lie side by side there."""
    rows = [
        (
            partials.data_ptr() + partials.element_size() * number * total.numel(),
            total.data_ptr(),
            partials.shape[0],
            partials.stride(0),
            total.numel(),
        )
        for partials, totals in sums
        for number, total in enumerate(totals)
    ]
    return torch.tensor(rows, dtype=torch.int64)


def fold(table: torch.Tensor, widest: int) -> None:
    """Add the sums of columns to their totals. The table is on the device; what it names must still be there."""
    grid = (triton.cdiv(widest, BLOCK), table.shape[0])
    fold_partials[grid](table, BLOCK=BLOCK, BLOCK_P=BLOCK_P, num_warps=NUM_WARPS)
