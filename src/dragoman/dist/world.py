"""Who am I among the ranks, and the few collectives everything needs. One class serves one rank and many.

Every byte that leaves a rank leaves through here and is counted; the methods in `sync` decide what travels.
"""

import datetime
import json
import os
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, cast

import torch
import torch.distributed as dist

from dragoman.dist.rendezvous import join_ranks
from dragoman.errors import DragomanError
from dragoman.plan.payload import ring_bytes

DEVICES = ("auto", "cpu", "cuda")
JOIN_TIMEOUT = datetime.timedelta(minutes=10)
T = TypeVar("T")


class Pending(Generic[T]):
    """A collective under way; `wait` gives its result."""

    def __init__(self, works: Sequence[dist.Work], result: Callable[[], T]) -> None:
        self._works = works
        self._result = result

    def wait(self) -> T:
        for work in self._works:
            work.wait()
        return self._result()


class World:
    """This rank, its device and its peers. With one rank every collective is the identity."""

    def __init__(
        self,
        rank: int,
        size: int,
        local_rank: int,
        device: torch.device,
        host_number: int = 0,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.device = device
        self.host_number = host_number
        self.host = os.environ.get("DRAGOMAN_HOST") or socket.gethostname()
        self.sent_bytes = 0
        self._group = group

    @property
    def name(self) -> str:
        """For people: 'rank 1 on b'."""
        return f"rank {self.rank} on {self.host}"

    @property
    def is_alone(self) -> bool:
        """One rank has nobody to tell anything."""
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """Rank 0 writes what only one may write."""
        return self.rank == 0

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Sum over all ranks, in place."""
        return self.start_sum(tensor).wait()

    def start_sum(self, tensor: torch.Tensor) -> Pending[torch.Tensor]:
        """The same, while this rank goes on; the tensor is not to be touched before `wait`."""
        if self.is_alone:
            return Pending((), lambda: tensor)
        self.sent_bytes += ring_bytes(tensor.numel() * tensor.element_size(), self.size)
        return Pending([_work(dist.all_reduce(tensor, group=self._group, async_op=True))], lambda: tensor)

    def start_gather(self, payload: torch.Tensor) -> Pending[list[torch.Tensor]]:
        """Everybody's tensor (the same size everywhere), in the order of ranks, while this rank goes on."""
        if self.is_alone:
            return Pending((), lambda: [payload])
        carried = payload.to(self.carrier)
        parts = [torch.empty_like(carried) for _ in range(self.size)]
        self.sent_bytes += (self.size - 1) * carried.numel() * carried.element_size()
        works = (
            [_work(dist.all_gather(parts, carried, group=self._group, async_op=True))]
            if self._is_nccl
            else self._start_swap([carried] * self.size, parts)
        )
        return Pending(works, lambda: [part.to(payload.device) for part in parts])

    def swap(self, chunks: torch.Tensor) -> torch.Tensor:
        """Row i goes to rank i; the rows that came, in the order of ranks."""
        if self.is_alone:
            return chunks
        carried = chunks.to(self.carrier)
        received = torch.empty_like(carried)
        self.sent_bytes += (self.size - 1) * carried[0].numel() * carried.element_size()
        if self._is_nccl:
            dist.all_to_all_single(received, carried, group=self._group)
        else:
            Pending(self._start_swap(list(carried), list(received)), lambda: None).wait()
        return received.to(chunks.device)

    def _start_swap(self, outgoing: Sequence[torch.Tensor], incoming: Sequence[torch.Tensor]) -> list[dist.Work]:
        """Straight to and from each peer: gloo's own collectives leave a fifth to two fifths of a slow link unused."""
        incoming[self.rank].copy_(outgoing[self.rank])
        peers = [(self.rank + shift) % self.size for shift in range(1, self.size)]
        receiving = [dist.irecv(incoming[peer], group=self._group, group_src=peer) for peer in reversed(peers)]
        sending = [dist.isend(outgoing[peer], group=self._group, group_dst=peer) for peer in peers]
        return [_work(work) for work in (*receiving, *sending)]

    def start_trade(
        self, peer: int, outgoing: torch.Tensor | None = None, incoming: torch.Tensor | None = None
    ) -> Pending[torch.Tensor | None]:
        """Between this rank and one other alone: give, take, or both at once. Gives what came, in place."""
        parts = [(dist.isend, outgoing), (dist.irecv, incoming)]
        trades = [dist.P2POp(op, part, group=self._group, group_peer=peer) for op, part in parts if part is not None]
        if outgoing is not None:
            self.sent_bytes += outgoing.numel() * outgoing.element_size()
        return Pending(dist.batch_isend_irecv(trades), lambda: incoming)

    def broadcast(self, tensor: torch.Tensor, source: int = 0) -> torch.Tensor:
        """One rank's values on every rank, in place."""
        if not self.is_alone:
            # A tree of ranks: what the source sends is at most this, what others send at most as much.
            self.sent_bytes += tensor.numel() * tensor.element_size()
            dist.broadcast(tensor, group=self._group, group_src=source)
        return tensor

    def any(self, flag: bool) -> bool:
        """True on every rank if true on one: decisions that end or alter the run are taken together."""
        if self.is_alone:
            return flag
        votes = torch.tensor([1.0 if flag else 0.0], device=self.device)
        return bool(self.sum(votes).item() > 0)

    @contextmanager
    def together(self) -> Generator[None]:
        """All ranks leave the block at once; if one fails there, it says why and the others end quietly with it."""
        try:
            yield
        except DragomanError as error:
            self.gather(error.exit_code)
            raise
        worst = max(self.gather(0))
        if worst:
            raise SystemExit(worst)

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value (plain JSON), in the order of ranks, on every rank."""
        if self.is_alone:
            return [value]
        payload = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        sizes = torch.stack(self.start_gather(torch.tensor([payload.numel()])).wait()).flatten().tolist()
        padded = torch.zeros(max(sizes), dtype=torch.uint8)
        padded[: payload.numel()] = payload
        parts = self.start_gather(padded).wait()
        return [json.loads(part[:size].numpy().tobytes()) for part, size in zip(parts, sizes, strict=True)]

    def within_host(self) -> "World":
        """The ranks of this host as a world of their own. All ranks call this together."""
        return self._part(lambda host, _local: host, self.host_number)

    def between_hosts(self) -> "World":
        """The ranks with this local rank on every host, as a world of their own. All ranks call this together."""
        return self._part(lambda _host, local: local, self.local_rank)

    def _part(self, key: Callable[[int, int], int], mine: int) -> "World":
        places: list[tuple[int, int]] = [tuple(place) for place in self.gather((self.host_number, self.local_rank))]
        result = self
        for value in sorted({key(*place) for place in places}):
            ranks = [rank for rank, place in enumerate(places) if key(*place) == value]
            # Every rank takes part in making every group, in the same order: torch asks for it.
            group = None if self.is_alone else cast("dist.ProcessGroup", dist.new_group(ranks))
            if value == mine:
                rank = ranks.index(self.rank)
                result = World(rank, len(ranks), self.local_rank, self.device, self.host_number, group)
        return result

    @property
    def carrier(self) -> torch.device:
        """gloo gathers on the CPU only, nccl on the GPU only; both sum wherever the tensor lies."""
        return self.device if self._is_nccl else torch.device("cpu")

    @property
    def _is_nccl(self) -> bool:
        return dist.get_backend(self._group) == "nccl"

    def close(self) -> None:
        if not self.is_alone:
            dist.destroy_process_group()


def _work(started: dist.Work | None) -> dist.Work:
    """What torch started for a rank of the group; it gives nothing to others, and no World is outside its group."""
    assert started is not None
    return started


def open_world() -> World:
    """Join the ranks that torchrun's environment variables describe; alone where there are none."""
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = pick_device(local_rank)
    if size > 1:
        store = join_ranks(rank, size)
        dist.init_process_group(_backend(device), store=store, rank=rank, world_size=size, timeout=JOIN_TIMEOUT)
    world = World(rank, size, local_rank, device)
    world.host_number = _host_number(world)
    return world


def _host_number(world: World) -> int:
    """torchrun says which of the hosts this is; other launchers do not, and names must tell."""
    if "GROUP_RANK" in os.environ:
        return int(os.environ["GROUP_RANK"])
    return list(dict.fromkeys(world.gather(world.host))).index(world.host)


def _backend(device: torch.device) -> str:
    """nccl between GPUs, but it refuses two ranks on one of them; gloo does not."""
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return "nccl" if device.type == "cuda" and local_size <= torch.cuda.device_count() else "gloo"


def pick_device(local_rank: int = 0) -> torch.device:
    """The GPU of this rank where there is one, else the CPU; DRAGOMAN_DEVICE names one of the two."""
    wanted = os.environ.get("DRAGOMAN_DEVICE", "auto")
    if wanted not in DEVICES:
        raise DragomanError(f"DRAGOMAN_DEVICE is {wanted!r}", f"use one of {', '.join(DEVICES)}")
    is_there = torch.cuda.is_available()
    if wanted == "cuda" and not is_there:
        raise DragomanError(
            "DRAGOMAN_DEVICE is 'cuda', and torch finds no GPU here",
            "`nvidia-smi` says whether the driver does; without it, or with cpu, the CPU computes",
        )
    if wanted == "cpu" or not is_there:
        return torch.device("cpu")
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device
