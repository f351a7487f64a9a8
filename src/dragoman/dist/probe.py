"""How fast the link between hosts is, measured the way the exchange will use it: all at once, both ways."""

from dataclasses import dataclass

import torch

from dragoman.dist.clock import now
from dragoman.dist.world import World

FIRST_BYTES, MOST_BYTES = 256_000, 256_000_000
LONG_ENOUGH_SECONDS = 0.25
NUM_PINGS = 7
NUM_TRIES = 3
NUM_PIECES = 8


@dataclass(frozen=True)
class LinkSpeed:
    """Of the slowest host."""

    bytes_per_second: float  # out of a host, while as much comes in
    latency_seconds: float  # of a sum of one number


def measure_link(world: World) -> LinkSpeed:
    """One rank per host measures, the others wait. All ranks call this together; it takes a second or two."""
    leaders = world.between_hosts()
    mine = _measure(leaders) if world.local_rank == 0 else None
    speeds = [LinkSpeed(*values) for values in world.gather(mine) if values is not None]
    return LinkSpeed(min(s.bytes_per_second for s in speeds), max(s.latency_seconds for s in speeds))


def _measure(leaders: World) -> tuple[float, float]:
    latency = sorted(_ping(leaders) for _ in range(NUM_PINGS))[NUM_PINGS // 2]
    num_bytes = FIRST_BYTES
    while True:
        # Ranks decide together: their clocks disagree about who was fast. The best of some tries, since a
        # connection gathers speed and other traffic comes and goes.
        seconds = min(max(leaders.gather(_seconds(leaders, num_bytes))) for _ in range(NUM_TRIES))
        if seconds >= LONG_ENOUGH_SECONDS or num_bytes * 4 > MOST_BYTES:
            return (leaders.size - 1) * num_bytes / seconds, latency
        num_bytes *= 4


def _ping(leaders: World) -> float:
    start = now(leaders.device)
    leaders.any(False)
    return now(leaders.device) - start


def _seconds(leaders: World, num_bytes: int) -> float:
    # Several at once, as fragments follow each other: a single one waits for its own last byte.
    payloads = torch.zeros(NUM_PIECES, -(-num_bytes // NUM_PIECES), dtype=torch.uint8, device=leaders.device)
    leaders.any(False)
    start = now(leaders.device)
    for pending in [leaders.start_gather(payload) for payload in payloads]:
        pending.wait()
    return now(leaders.device) - start
