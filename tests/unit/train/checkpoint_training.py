"""A model that is saved and restored without a training run around it."""

from pathlib import Path

import torch
from torch import nn

from dragoman.config import OptimConfig
from dragoman.dist.methods import make_sync
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel
from dragoman.model.weights import load_tensors
from dragoman.run.checkpoint_files import WEIGHTS
from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.train.checkpoint import Checkpoints, Saved
from dragoman.train.optim import Optimizer
from dragoman.train.progress import Progress
from dragoman.train.scale import LossScale
from small_runs import tiny_recipe

CPU = torch.device("cpu")


def save(checkpoints: Checkpoints, progress: Progress) -> Saved:
    """Begun and waited for."""
    assert checkpoints.begin(progress) is None
    saved = checkpoints.finish()
    assert saved is not None and saved.step == progress.step
    return saved


class Training:
    """A model that changes at every step, and a folder to save it in."""

    def __init__(self, path: Path, scale: LossScale | None = None, name: str = "some.model") -> None:
        self.folder: RunFolder = create_run_folder(path / "run")
        self.vocab = path / name
        self.vocab.write_bytes(b"pieces")
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
        self.flat = FlatModel(self.model)
        self.optimizer = Optimizer(self.flat, OptimConfig(), scale=scale)

    def checkpoints(self, world: World | None = None, *settings: str) -> Checkpoints:
        world = world or World(0, 1, 0, CPU)
        # Many tests save the same step twice or thin out by hand: keep all.
        recipe = tiny_recipe("checkpoint.keep_last=100", "sync.method=dense", *settings)
        self.sync = make_sync(recipe.sync, world, self.flat)
        return Checkpoints(self.folder, world, self.model, self.optimizer, self.sync, recipe, self.vocab)

    def save(self, *steps: int) -> dict[str, int]:
        for step in steps:
            self.model(torch.ones(2, 3)).pow(3).sum().backward()
            self.optimizer.update(0.1)
            progress = Progress(step, target_tokens=100 * step, best_loss=1 / step, best_loss_step=step)
            saved = save(self.checkpoints(), progress)
        return saved.files

    def weights(self, step: int) -> dict[str, torch.Tensor]:
        return load_tensors(self.folder.step_checkpoint(step) / WEIGHTS)
