"""Where each sequence lies in a packed run of tokens. Knows lengths, not words.

Shape letters: T tokens, B sequences, L padded length.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

# On the CPU, attention pads sequences in groups; a group ends where padding would cost more than this share.
MAX_PADDING = 0.2
MIN_GROUP_TOKENS = 192


@dataclass(frozen=True)
class Layout:
    """B sequences laid end to end in T slots."""

    lengths: np.ndarray  # (B,) int
    device: torch.device

    @cached_property
    def starts(self) -> np.ndarray:
        """(B + 1,) cumulative lengths, on the host."""
        return np.concatenate(([0], np.cumsum(self.lengths, dtype=np.int64)))

    @cached_property
    def cumulative_B1(self) -> torch.Tensor:
        """Cumulative lengths on the device, as variable-length kernels want them."""
        return torch.from_numpy(self.starts.astype(np.int32)).to(self.device)

    @cached_property
    def positions_T(self) -> torch.Tensor:
        """Place of every token in its own sequence, from 0."""
        flat = np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], self.lengths)
        return torch.from_numpy(flat).to(self.device)

    @property
    def max_length(self) -> int:
        return int(self.lengths.max())

    def grid(self, first: int, last: int) -> "Grid":
        """Sequences first..last as a padded rectangle."""
        return Grid.of(self.starts[first:last], self.lengths[first:last], self.device)


@dataclass(frozen=True)
class Grid:
    """A padded view of neighbouring sequences: B rows of L slots."""

    index_BL: torch.Tensor | None  # slot of every cell, None where the rows are equally long and lie in a row already
    valid_BL: torch.Tensor | None  # None: no padding at all
    cells_T: torch.Tensor | None  # the cell of every token
    begin: int
    end: int
    num_rows: int
    length: int

    @classmethod
    def of(cls, starts: np.ndarray, lengths: np.ndarray, device: torch.device) -> "Grid":
        begin, end = int(starts[0]), int(starts[-1] + lengths[-1])
        num_rows, length = len(lengths), int(lengths.max())
        if num_rows * length == end - begin:
            return cls(None, None, None, begin, end, num_rows, length)
        column = np.arange(length)
        valid = column < lengths[:, None]
        index = np.where(valid, (starts - begin)[:, None] + column, 0)
        tensors = [torch.from_numpy(a).to(device) for a in (index.reshape(-1), valid, np.flatnonzero(valid))]
        return cls(tensors[0], tensors[1], tensors[2], begin, end, num_rows, length)

    def pad(self, x_TX: torch.Tensor) -> torch.Tensor:
        """Tokens of these sequences -> (B, L, X). Padding repeats the first token and must be masked."""
        part = x_TX[self.begin : self.end]
        if self.index_BL is not None:
            part = part.index_select(0, self.index_BL)
        return part.view(self.num_rows, self.length, *x_TX.shape[1:])

    def unpad(self, x_BLX: torch.Tensor) -> torch.Tensor:
        """(B, L, X) -> tokens, padding dropped."""
        flat = x_BLX.reshape(-1, *x_BLX.shape[2:])
        return flat if self.cells_T is None else flat.index_select(0, self.cells_T)


def length_groups(*lengths: np.ndarray) -> list[tuple[int, int]]:
    """Cut sequences into runs [first, last) whose padding stays small on every side.

    Packed batches are sorted by length, so neighbours fit together; a run is also long enough to be worth a call.
    """
    num_sequences = len(lengths[0])
    groups: list[tuple[int, int]] = []
    first = 0
    totals = [0] * len(lengths)
    maxima = [0] * len(lengths)
    for i in range(num_sequences):
        row = [int(side[i]) for side in lengths]
        new_totals = [total + n for total, n in zip(totals, row, strict=True)]
        new_maxima = [max(pair) for pair in zip(maxima, row, strict=True)]
        rows = i + 1 - first
        wasteful = any(t < m * rows * (1 - MAX_PADDING) for t, m in zip(new_totals, new_maxima, strict=True))
        if wasteful and min(totals) >= MIN_GROUP_TOKENS:
            groups.append((first, i))
            first, totals, maxima = i, row, row
        else:
            totals, maxima = new_totals, new_maxima
    groups.append((first, num_sequences))
    return groups
