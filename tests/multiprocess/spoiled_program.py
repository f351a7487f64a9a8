"""A worker for test_spoiled_runs.py: its second rank computes losses that are no numbers, as JSON in SPOILED says."""

import json
import math
import os
import sys

import pytest
import torch

from dragoman.train import rank, worker
from dragoman.train.optim import Optimizer
from spoiled_steps import spoil

PLAN = json.loads(os.environ["SPOILED"])
RANK = int(os.environ["RANK"])


def factor(step: int, visit: int) -> float:
    is_spoiled = RANK == 1 and PLAN["first"] <= step <= PLAN["last"] and visit <= PLAN["visits"]
    return math.nan if is_spoiled else 1.0


def main() -> int:
    """Train, and leave this rank's last weights beside the run."""
    flats = []
    update = Optimizer.update

    def noted(self: Optimizer, rate: float) -> torch.Tensor:
        flats[:] = [self._flat]
        return update(self, rate)

    with pytest.MonkeyPatch.context() as patches:
        spoil(patches, factor)
        patches.setattr(Optimizer, "update", noted)
        code = rank.main(sys.argv[1])
    torch.save(flats[0].weights.clone(), f"{PLAN['weights']}.{RANK}")
    return code


if __name__ == "__main__":
    worker.end_with_launcher()
    rank.leave(main())
