"""The time on a device's own terms, and how far the hosts' clocks are apart."""

import statistics
import time
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from dragoman.dist.world import World

NUM_ROUNDS = 9


def now(device: torch.device) -> float:
    """Seconds, once the device has done what it was told so far: a GPU, and nccl on it, return before they are done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def clock_offsets(world: "World") -> dict[str, float]:
    """Host -> seconds by which its clock is ahead of the first host's. All ranks call this together.

    Ranks leave a tiny sum at nearly the same moment, and each reads its clock there; the median forgives a late one.
    """
    moments: list[float] = []
    for _ in range(NUM_ROUNDS):
        world.any(False)
        moments.append(time.time())
    told: list[tuple[str, list[float]]] = [(host, theirs) for host, theirs in world.gather([world.host, moments])]
    first = told[0][1]
    offsets: dict[str, float] = {}
    for host, theirs in told:
        ahead = statistics.median(there - here for there, here in zip(theirs, first, strict=True))
        offsets.setdefault(host, ahead)
    return offsets
