"""Work that a GPU repeats by itself: told of once, replayed in one call."""

from collections.abc import Callable
from functools import cache

import torch


class Recorder:
    """Its graphs share memory for what they compute on the way: one runs at a time, and leaves nothing there.

    A recorder whose graphs are all gone is of no more use: torch does not let that memory be shared again.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            self._side = _side_stream(device)
            self._pool = torch.cuda.graph_pool_handle()

    def record(self, work: Callable[[], None]) -> Callable[[], object]:
        """The same work as a graph; where there are none, the work itself. Runs it once, on what lies there now."""
        if self._device.type != "cuda":
            return work
        current = torch.cuda.current_stream(self._device)
        self._side.wait_stream(current)
        with torch.cuda.stream(self._side):  # what happens only once, such as compilation, must not be recorded
            work()
        graph = torch.cuda.CUDAGraph()
        # Of this thread alone: while training validates, another one fills memory for the next steps.
        with torch.cuda.graph(graph, pool=self._pool, stream=self._side, capture_error_mode="thread_local"):
            work()
        current.wait_stream(self._side)
        return graph.replay


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all recorders: matrix products keep some memory for every stream that they have ever run on."""
    return torch.cuda.Stream(device)
