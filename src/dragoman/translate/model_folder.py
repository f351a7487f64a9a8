"""What MODEL on the command line means: a run, or one of its checkpoints. Paths only, no torch."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.config import Recipe
from dragoman.containment import is_inside
from dragoman.errors import DragomanError
from dragoman.recipe import load_recipe
from dragoman.run.folder import AVERAGE, RunFolder
from dragoman.run.reader import read_manifest

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

    @property
    def run(self) -> RunFolder | None:
        """The run that it is a checkpoint of, where it still lies in one."""
        run = RunFolder(self.path.parent.parent)
        return run if self.path.parent == run.checkpoints_path and run.manifest_path.is_file() else None

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target; empty where nobody says."""
        try:
            source, _, target = read_manifest(self.run).data.languages.partition("-") if self.run else ("", "", "")
        except DragomanError:  # a checkpoint translates without it
            return "", ""
        return source, target


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
