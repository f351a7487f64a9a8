"""What diloco costs beside the exchange: packing, averaging and applying fragments of a Transformer-base's weights.

    python benchmarks/diloco_arithmetic.py

Two replicas, of which the second is an echo of the first: nothing travels. Prints one JSON line per `sync.every_steps`.
"""

import argparse
import json

import torch

from dragoman.config import ModelConfig, SyncConfig
from dragoman.dist.clock import now
from dragoman.dist.methods import make_sync
from dragoman.dist.world import Pending, World, pick_device
from dragoman.model.flat import FlatModel
from dragoman.model.transformer import Transformer

VOCAB_SIZE = 32_768


class Echo(World):
    """Two ranks, the other of which says at once what this one does."""

    def start_gather(self, payload: torch.Tensor) -> Pending[list[torch.Tensor]]:
        return Pending((), lambda: [payload, payload.clone()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    device = pick_device()
    flat = FlatModel(Transformer(ModelConfig(), VOCAB_SIZE).to(device))
    for every in (4, 16, 64):
        config = SyncConfig(method="diloco", precision="sign", every_steps=every, replica="rank")
        sync = make_sync(config, Echo(0, 2, 0, device), flat)
        sync.load_state({})
        totals = torch.zeros(5, dtype=torch.float64, device=device)
        for step in range(1, 11):
            sync.advance(step, totals)
        start = now(device)
        for step in range(11, 11 + options.steps):
            sync.advance(step, totals)
        milliseconds = 1000 * (now(device) - start) / options.steps
        case = {"every_steps": every, "num_parameters": flat.weights.numel(), "device": _name(device)}
        print(json.dumps({**case, "milliseconds_per_step": round(milliseconds, 3)}), flush=True)


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


if __name__ == "__main__":
    main()
