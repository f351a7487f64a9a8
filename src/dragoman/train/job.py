"""What one attempt of a run is told to do, and whether it may go on in an existing run folder. No torch."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import Recipe
from dragoman.errors import DragomanError
from dragoman.run.folder import RunFolder
from dragoman.run.records import Manifest

# Settings that may change when a run goes on: they bear on its length and on what is watched, not on its updates.
CHANGEABLE = ("name", "about", "data", "vocab", "decode", "evaluate", "checkpoint")
CHANGEABLE_KEYS = ("train.max_steps", "train.max_minutes", "train.patience", "train.log_every")


@dataclass(frozen=True)
class Job:
    """Crosses from the command to its workers as JSON."""

    recipe: Recipe
    data: Path
    run: Path
    attempt: int
    command: str
    init: Path | None = None

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.run)

    def to_json(self) -> str:
        values = {
            "recipe": self.recipe.model_dump(),
            "data": str(self.data),
            "run": str(self.run),
            "attempt": self.attempt,
            "command": self.command,
            "init": None if self.init is None else str(self.init),
        }
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> "Job":
        values = json.loads(text)
        init = values["init"]
        return cls(
            Recipe.model_validate(values["recipe"]),
            Path(values["data"]),
            Path(values["run"]),
            values["attempt"],
            values["command"],
            None if init is None else Path(init),
        )


def recipe_hash(recipe: Recipe) -> str:
    """Of the settings that decide the updates: equal for runs that may go on in each other's folder."""
    return hashlib.sha256(json.dumps(_deciding(recipe.model_dump()), sort_keys=True).encode()).hexdigest()[:16]


def check_same_run(manifest: Manifest, recipe: Recipe, fingerprint: str, folder: Path) -> None:
    """Refuse to mix two runs in one folder, and name the first difference."""
    there, here = _deciding(manifest.recipe), _deciding(recipe.model_dump())
    for key in sorted(there.keys() | here.keys()):
        if there.get(key) != here.get(key):
            raise DragomanError(
                f"{folder} belongs to another recipe: {key} is {there.get(key)} there and {here.get(key)} here",
                "name a new folder with --run, or give the recipe it was started with",
            )
    if manifest.data.fingerprint != fingerprint:
        raise DragomanError(
            f"{folder} was started on other data: {manifest.data.path}",
            "name a new folder with --run, or the data folder it was started with",
        )


def _deciding(recipe: dict[str, Any]) -> dict[str, Any]:
    flat = {
        f"{section}.{key}": value
        for section, values in recipe.items()
        if section not in CHANGEABLE
        for key, value in values.items()
    }
    return {key: value for key, value in flat.items() if key not in CHANGEABLE_KEYS}
