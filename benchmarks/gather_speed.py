"""How long two hosts need to give each other one message: `World` against gloo's own collectives.

    dragoman lab --hosts 2 --link 100mbit -- python benchmarks/gather_speed.py

The message is what diloco sends for a Transformer-base by signs every 16 steps. Prints one JSON line.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ADDRESS, PORT = "10.77.0.1", 29555
NUM_BYTES = 535_450


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        return work(options.rank, options.rounds)
    mine = [sys.executable, str(Path(__file__).resolve()), "--rounds", str(options.rounds), "--rank"]
    other = subprocess.Popen([*shlex.split(os.environ["DRAGOMAN_SSH"]), "b", shlex.join([*mine, "1"])])
    sys.exit(subprocess.call([*mine, "0"]) or other.wait())


def work(rank: int, rounds: int) -> None:
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK="0", GROUP_RANK=str(rank), MASTER_ADDR=ADDRESS,
        MASTER_PORT=str(PORT), GLOO_SOCKET_IFNAME="eth0", DRAGOMAN_DEVICE="cpu", OMP_NUM_THREADS="1",
    )  # fmt: skip
    import torch
    import torch.distributed as dist

    from dragoman.dist.world import open_world

    world = open_world()
    message = torch.zeros(NUM_BYTES, dtype=torch.uint8)
    both = torch.zeros(2, NUM_BYTES, dtype=torch.uint8)
    parts = list(torch.zeros_like(both))
    ways: dict[str, Callable[[], object]] = {
        "World.start_gather": lambda: world.start_gather(message).wait(),
        "all_gather": lambda: dist.all_gather(parts, message),
        "World.swap": lambda: world.swap(both),
        "all_to_all_single": lambda: dist.all_to_all_single(torch.empty_like(both), both),
    }
    milliseconds: dict[str, float] = {}
    for name, way in ways.items():
        way()
        world.any(False)
        start = time.perf_counter()
        for _ in range(rounds):
            way()
        milliseconds[name] = round(1000 * (time.perf_counter() - start) / rounds, 1)
    if world.is_first:
        print(json.dumps({"bytes_each_way": NUM_BYTES, "rounds": rounds, "milliseconds": milliseconds}), flush=True)
    world.close()


if __name__ == "__main__":
    main()
