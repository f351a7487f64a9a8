"""What a backward pass leaves for its end: column sums, which nothing in the pass itself waits for."""

from collections.abc import Sequence

import torch

from dragoman.model.fused.columns import fold, table_of


class Leftover:
    """Partial sums that kernels of a pass have left, and their totals: gradients of biases and norms."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sums: list[tuple[torch.Tensor, Sequence[torch.Tensor]]] = []
        self._spare: torch.Tensor | None = None
        self._recorded: list[torch.Tensor] = []

    def add_sums(self, partials: torch.Tensor, totals: Sequence[torch.Tensor]) -> None:
        """Add the sums of the partials' columns to vectors of equal width that lie side by side there."""
        self._sums.append((partials, totals))

    def finish(self) -> None:
        """After the pass: all sums in one kernel."""
        if self._sums:
            table = table_of(self._sums)
            widest = int(table[:, -1].max())
            fold(self._on_device(table), widest)
        self._sums = []

    def _on_device(self, table: torch.Tensor) -> torch.Tensor:
        """A graph reads its table anew at every replay, from memory that must be there before it is recorded."""
        if self._device.type != "cuda":
            return table
        if not torch.cuda.is_current_stream_capturing():
            self._spare = torch.empty_like(table, pin_memory=True)
            return table.to(self._device)
        assert self._spare is not None and self._spare.shape == table.shape, "a pass is run before it is recorded"
        self._recorded.append(self._spare.copy_(table))
        self._spare = None
        return self._recorded[-1].to(self._device, non_blocking=True)
