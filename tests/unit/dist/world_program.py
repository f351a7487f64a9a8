"""What two ranks do for test_world.py: every collective once; each rank writes what it saw."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from dragoman.dist.world import World, open_world
from dragoman.errors import DragomanError


def count(world: World, collective: Callable[[], object]) -> int:
    before = world.sent_bytes
    collective()
    return world.sent_bytes - before


def crossed(world: World) -> list[list[int]]:
    """Two gathers under way at once, the later one awaited first."""
    early, late = (world.start_gather(torch.tensor([base + world.rank])) for base in (10, 20))
    return [torch.cat(pending.wait()).tolist() for pending in (late, early)]


def main(folder: Path) -> None:
    world = open_world()
    seen = {
        "rank": world.rank,
        "size": world.size,
        "is_first": world.is_first,
        "sum": world.sum(torch.tensor([1.0, 10.0 * world.rank])).tolist(),
        "any": [world.any(world.rank == 1), world.any(False), world.any(True)],
        "gather": world.gather({"rank": world.rank, "text": "ü" * (1 + 5 * world.rank), "rows": [[1, None]]}),
        "swap": world.swap(torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * (world.rank + 1)).tolist(),
        "broadcast": world.broadcast(torch.tensor([5.0 + world.rank])).tolist(),
        "pending": [part.tolist() for part in world.start_gather(torch.tensor([7, world.rank])).wait()],
        "crossed": crossed(world),
        "sent_bytes": [
            count(world, lambda: world.sum(torch.zeros(100))),
            count(world, lambda: world.start_gather(torch.zeros(30, dtype=torch.uint8)).wait()),
            count(world, lambda: world.swap(torch.zeros(2, 50))),
            count(world, lambda: world.broadcast(torch.zeros(10))),
        ],
        "within_host": (world.within_host().size, world.within_host().rank),
        "between_hosts": (world.between_hosts().size, world.between_hosts().rank),
    }
    with world.together():
        seen["together"] = "all well"
    try:
        with world.together():
            if world.is_first:
                raise DragomanError("no room")
    except DragomanError as error:
        seen["failed"] = error.message
    except SystemExit as end:
        seen["failed"] = end.code
    (folder / f"rank-{world.rank}.json").write_text(json.dumps(seen))
    world.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
