"""A worker for test_out_of_memory.py: its second rank runs out of memory while the first waits for it."""

import sys

import torch

from dragoman.dist.world import World
from dragoman.train import rank, worker
from dragoman.train.job import Job


def train(_job: Job, world: World) -> str:
    if world.rank == 1:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
    world.any(False)
    return "it was not stopped"


if __name__ == "__main__":
    rank.train = train
    worker.end_with_launcher()
    rank.leave(rank.main(sys.argv[1]))
