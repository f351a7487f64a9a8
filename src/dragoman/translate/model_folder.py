"""What MODEL on the command line means: a run, or one of its checkpoints. Paths only, no torch."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.config import Recipe
from dragoman.containment import is_inside
from dragoman.errors import DragomanError
from dragoman.recipe import load_recipe
from dragoman.run.folder import AVERAGE, RunFolder

# Which checkpoint of a run translates best, as far as the run itself could tell.
PREFERRED = (AVERAGE, "best-bleu", "best-loss", "last")


@dataclass(frozen=True)
class ModelFolder:
    """A checkpoint with all that is needed to translate."""

    path: Path

    @property
    def weights_path(self) -> Path:
        return self.path / "weights.safetensors"

    @property
    def vocab_path(self) -> Path:
        return self.path / "vocab.model"

    @property
    def recipe(self) -> Recipe:
        return load_recipe(str(self.path / "recipe.toml"))


def find_model(model: str | Path) -> ModelFolder:
    """The checkpoint that MODEL names; of a run, its average or best one."""
    path = Path(model)
    if not path.exists():
        raise DragomanError(f"there is no model {path}", "name a run folder or one of its checkpoints")
    checkpoints = RunFolder(path).checkpoints_path
    candidates = [path, *(checkpoints / name for name in PREFERRED if is_inside(checkpoints, name))]
    for candidate in candidates:
        if (candidate / "weights.safetensors").is_file():
            folder = ModelFolder(candidate.resolve())
            _require(folder.vocab_path, folder.path / "recipe.toml")
            return folder
    if checkpoints.is_dir():
        raise DragomanError(f"{path} has no checkpoint yet", "train longer, or set checkpoint.every_steps lower")
    raise DragomanError(f"{path} is not a model", "name a run folder or one of its checkpoints")


def _require(*paths: Path) -> None:
    for path in paths:
        if not path.is_file():
            raise DragomanError(f"the checkpoint is not complete: {path} is missing", "use another checkpoint")
