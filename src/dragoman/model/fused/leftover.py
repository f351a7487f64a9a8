"""What a backward pass leaves for later: gradients of weights, which nothing in the pass itself waits for."""

from collections import deque
from collections.abc import Sequence

import torch

from dragoman.model.fused.columns import fold, table_of

MOST_UNDER_WAY = 4  # products whose factors are kept alive; more would take memory and bring nothing


class Leftover:
    """Products run beside the pass, on a stream of their own; column sums wait for its end and take one kernel."""

    def __init__(self, device: torch.device) -> None:
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._under_way: deque[tuple[torch.Event, tuple[torch.Tensor, ...]]] = deque()
        self._sums: list[tuple[torch.Tensor, list[torch.Tensor]]] = []
        self._spare: torch.Tensor | None = None
        self._recorded: list[torch.Tensor] = []

    def add_product(self, gradient: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
        """gradient += left @ right, some time before `finish` is through."""
        if self._side is None:
            add_product(gradient, left, right)
            return
        current = torch.cuda.current_stream(left.device)
        self._side.wait_stream(current)
        with torch.cuda.stream(self._side):
            add_product(gradient, left, right)
        self._under_way.append((self._side.record_event(), (left, right)))
        if len(self._under_way) > MOST_UNDER_WAY:
            current.wait_event(self._under_way.popleft()[0])

    def add_sums(self, partials: torch.Tensor, totals: Sequence[torch.Tensor]) -> None:
        """Add the sums of the partials' columns to vectors of equal width that lie side by side there."""
        self._sums.append((partials, list(totals)))

    def finish(self) -> None:
        """After the pass: wait for the products, fold the sums."""
        sums = self._sums
        self.forget()
        if sums:
            table = table_of(sums)
            widest = int(table[:, -1].max())
            fold(self._on_device(table), widest)

    def forget(self) -> None:
        """After a pass that failed: a graph cannot be closed, not even an unfinished one, with work beside it."""
        if self._side is not None:
            torch.cuda.current_stream(self._side.device).wait_stream(self._side)
        self._under_way.clear()
        self._sums = []

    def _on_device(self, table: torch.Tensor) -> torch.Tensor:
        """A graph reads its table anew at every replay, from memory that must be there before it is recorded."""
        if self._side is None:
            return table
        if not torch.cuda.is_current_stream_capturing():
            self._spare = torch.empty_like(table, pin_memory=True)
            return table.to(self._side.device)
        assert self._spare is not None and self._spare.shape == table.shape, "a pass is run before it is recorded"
        self._recorded.append(self._spare.copy_(table))
        self._spare = None
        return self._recorded[-1].to(self._side.device, non_blocking=True)


def add_product(gradient: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """gradient += left @ right, summed in fp32 whatever the factors are."""
    if left.dtype == gradient.dtype:
        gradient.addmm_(left, right)
    else:
        torch.addmm(gradient, left, right, out_dtype=gradient.dtype, out=gradient)
