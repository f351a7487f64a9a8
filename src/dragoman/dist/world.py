"""Who am I among the ranks, and the few small collectives everything needs. One class serves one rank and many."""

import datetime
import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from dragoman.errors import DragomanError

JOIN_TIMEOUT = datetime.timedelta(minutes=10)


class World:
    """This rank, its device and its peers. With one rank every collective is the identity."""

    def __init__(self, rank: int, size: int, local_rank: int, device: torch.device) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.device = device
        self.host = socket.gethostname()

    @property
    def is_first(self) -> bool:
        """Rank 0 writes what only one may write."""
        return self.rank == 0

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Sum over all ranks, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """True on every rank if true on one: decisions that end or alter the run are taken together."""
        if self.size == 1:
            return flag
        votes = torch.tensor([1.0 if flag else 0.0], device=self.device)
        return bool(self.sum(votes).item() > 0)

    @contextmanager
    def together(self) -> Generator[None]:
        """All ranks leave the block at once; if one fails there, it says why and the others end quietly with it."""
        try:
            yield
        except DragomanError:
            self.any(True)
            raise
        if self.any(False):
            raise SystemExit(DragomanError.exit_code)

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value (plain JSON), in the order of ranks, on every rank."""
        if self.size == 1:
            return [value]
        # gloo gathers on the CPU only, nccl on the GPU only; both sum wherever the tensor lies.
        device = self.device if dist.get_backend() == "nccl" else torch.device("cpu")
        payload = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(device)
        sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor([payload.numel()], device=device))
        longest = int(max(size.item() for size in sizes))
        padded = torch.zeros(longest, dtype=torch.uint8, device=device)
        padded[: payload.numel()] = payload
        parts = [torch.zeros_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded)
        cut = [part[: int(size.item())].cpu().numpy().tobytes() for part, size in zip(parts, sizes, strict=True)]
        return [json.loads(text) for text in cut]

    def close(self) -> None:
        if self.size > 1:
            dist.destroy_process_group()


def open_world() -> World:
    """Join the ranks that torchrun's environment variables describe; alone where there are none."""
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = pick_device(local_rank)
    if size > 1:
        dist.init_process_group(_backend(device), rank=rank, world_size=size, timeout=JOIN_TIMEOUT)
    return World(rank, size, local_rank, device)


def _backend(device: torch.device) -> str:
    """nccl between GPUs, but it refuses two ranks on one of them; gloo does not."""
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return "nccl" if device.type == "cuda" and local_size <= torch.cuda.device_count() else "gloo"


def pick_device(local_rank: int = 0) -> torch.device:
    """The GPU of this rank where there is one, else the CPU. DRAGOMAN_DEVICE=cpu overrides."""
    wanted = os.environ.get("DRAGOMAN_DEVICE", "auto")
    if wanted == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device
