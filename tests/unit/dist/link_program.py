"""What two ranks that take themselves for two hosts do for test_link_probe.py."""

import dataclasses
import json
import sys
import time
from pathlib import Path

from dragoman.dist.probe import measure_link
from dragoman.dist.world import open_world


def main(folder: Path) -> None:
    world = open_world()
    world.host, world.host_number, world.local_rank = "ab"[world.rank], world.rank, 0
    said: list[str] = []
    start = time.monotonic()
    link = measure_link(world, budget_seconds=4.0, say=said.append)
    found = {"link": dataclasses.asdict(link), "seconds": time.monotonic() - start, "said": said}
    (folder / f"rank-{world.rank}.json").write_text(json.dumps(found))
    world.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
