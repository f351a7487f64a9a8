"""Ranks as threads of the test process: `World` without processes, to test methods of exchange in no time."""

import threading
from collections.abc import Callable
from typing import Any

import torch

from dragoman.dist.world import Pending, World


class Meeting:
    """Where the threads leave their tensors and wait for each other."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=30)
        self.slots: list[Any] = [None] * size


class ThreadWorld(World):
    """One rank. A collective started is met at once: what is tested is what the method does with it."""

    def __init__(self, rank: int, size: int, meeting: Meeting) -> None:
        super().__init__(rank, size, 0, torch.device("cpu"), host_number=rank)
        self._meeting = meeting

    def _meet(self, value: Any) -> list[Any]:
        self._meeting.slots[self.rank] = value
        self._meeting.barrier.wait()
        everybody = list(self._meeting.slots)
        self._meeting.barrier.wait()
        return everybody

    def start_sum(self, tensor: torch.Tensor) -> Pending[torch.Tensor]:
        parts = self._meet(tensor.clone())
        self.sent_bytes += 2 * (self.size - 1) * tensor.numel() * tensor.element_size() // self.size
        tensor.copy_(torch.stack(parts).sum(0))
        return Pending((), lambda: tensor)

    def start_gather(self, payload: torch.Tensor) -> Pending[list[torch.Tensor]]:
        parts = self._meet(payload.clone())
        self.sent_bytes += (self.size - 1) * payload.numel() * payload.element_size()
        return Pending((), lambda: parts)

    def swap(self, chunks: torch.Tensor) -> torch.Tensor:
        self.sent_bytes += (self.size - 1) * chunks[0].numel() * chunks.element_size()
        return torch.stack([part[self.rank] for part in self._meet(chunks.clone())])

    def broadcast(self, tensor: torch.Tensor, source: int = 0) -> torch.Tensor:
        return tensor.copy_(self._meet(tensor.clone())[source])

    def gather(self, value: Any) -> list[Any]:
        return self._meet(value)

    def within_host(self) -> World:
        return World(0, 1, 0, self.device)

    def between_hosts(self) -> World:
        return self


def run_ranks(size: int, body: Callable[[World], Any]) -> list[Any]:
    """`body` on every rank at once; what each gave, or the first error."""
    meeting = Meeting(size)
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def work(rank: int) -> None:
        try:
            results[rank] = body(ThreadWorld(rank, size, meeting))
        except BaseException as error:
            errors.append(error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
