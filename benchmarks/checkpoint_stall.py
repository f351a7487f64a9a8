"""How long training waits for a checkpoint, and how long the disk takes: Transformer-base with its optimizer.

    python benchmarks/checkpoint_stall.py [--recipe base] [--folder DIR] [--times 5]

On a GPU if there is one. Between two saves the weights change in place, as in training. Prints one JSON line: seconds
that `begin` keeps a step waiting, seconds until all is written, synced and sealed, and bytes.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch

from dragoman.dist.methods import make_sync
from dragoman.dist.world import World
from dragoman.recipe import load_recipe
from dragoman.run.folder import create_run_folder
from dragoman.train.build import build_model
from dragoman.train.checkpoint import Checkpoints
from dragoman.train.optim import Optimizer
from dragoman.train.progress import Progress

VOCAB_SIZE = 32_768


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured (default: a temporary one)")
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(json.dumps(measured(options.recipe, Path(folder), options.times)))


def measured(name: str, path: Path, times: int) -> dict[str, object]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    recipe = load_recipe(name, ["sync.method=dense"])
    world = World(0, 1, 0, device)
    built = build_model(recipe, VOCAB_SIZE, device)
    optimizer = Optimizer(built.flat, recipe.optim, built.rounded, built.scale)
    (path / "vocab.model").write_bytes(b"pieces")
    sync = make_sync(recipe.sync, world, built.flat)
    folder = create_run_folder(path / "run")
    checkpoints = Checkpoints(folder, world, built.model, optimizer, sync, recipe, path / "vocab.model")
    waiting, writing, num_bytes = [], [], 0
    for step in range(1, times + 1):
        built.flat.weights.mul_(0.999)
        if device.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        checkpoints.begin(Progress(step))
        waiting.append(time.perf_counter() - began)
        saved = checkpoints.finish()
        assert saved is not None and not saved.problem, saved
        writing.append(time.perf_counter() - began)
        num_bytes = sum(saved.files.values())
    return {
        "benchmark": "checkpoint_stall",
        "recipe": name,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "bytes": num_bytes,
        "waiting_seconds": [round(seconds, 4) for seconds in waiting],
        "median_waiting_seconds": round(statistics.median(waiting), 4),
        "median_written_seconds": round(statistics.median(writing), 3),
        "torch": torch.__version__,
        "time": time.strftime("%Y-%m-%d %H:%M"),
    }


if __name__ == "__main__":
    main()
