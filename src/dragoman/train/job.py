"""What one attempt of a run is told to do, and whether it may go on in an existing run folder. No torch."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.config import CutRecipe, Recipe
from dragoman.data.shards import open_shards
from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256
from dragoman.plan.microbatches import check_room, cut
from dragoman.recipe import parse_recipe
from dragoman.run.control import refuse_running
from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.run.reader import read_manifest
from dragoman.run.records import Manifest
from dragoman.train.fork import copy_fork, find_fork
from dragoman.train.limits import cost_seconds, reached_limit, time_limit
from dragoman.translate.model_folder import ModelFolder, find_model

# Settings that may change when a run goes on: on its length, on what is watched, on how ranks stay together or compute.
CHANGEABLE = ("name", "about", "data", "vocab", "decode", "evaluate", "checkpoint", "sync")
CHANGEABLE_KEYS = (
    "train.max_steps",
    "train.max_minutes",
    "train.hang_minutes",
    "train.patience",
    "train.log_every",
    "train.kernels",
    "train.recompute",
    "train.deterministic",
    # A step's sentences are fixed before they are cut, and the loss is divided by the tokens of all: another number
    # changes the order of summation and which elements dropout takes, as another GPU would, and no update by more.
    # A run whose memory turned out too small must be able to go on with smaller pieces.
    "batch.num_microbatches",
)


@dataclass(frozen=True)
class Job:
    """Crosses from the command to its workers as JSON."""

    recipe: Recipe
    data: Path
    run: Path
    attempt: int
    command: str
    init: Path | None = None
    price_per_hour: float | None = None  # of all hosts together
    asks: bool = False  # somebody at a terminal may say no to what is predicted
    most_waiting: float | None = None  # share of a step; more than that predicted, and the run does not begin
    num_microbatches: int | None = None  # of a step, once the ranks have settled it
    recomputes: bool = False  # activations, likewise
    precision: str | None = None  # of this rank, likewise
    max_cost: float | None = None  # only with a price

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.run)

    @property
    def bought_seconds(self) -> float | None:
        """Of training, by the money that may be spent."""
        return cost_seconds(self.max_cost, self.price_per_hour)

    def tried_again(self, attempt: int) -> "Job":
        """For an attempt that follows by itself: whoever may say no to what is predicted has said yes before."""
        return self if attempt == self.attempt else replace(self, attempt=attempt, asks=False, most_waiting=None)

    def reached_limit(self) -> str | None:
        """One line, where earlier attempts have used up the time or the money."""
        return reached_limit(self.folder, time_limit(self.recipe.train.max_minutes, self.bought_seconds))

    @property
    def cut_recipe(self) -> CutRecipe:
        """The recipe with the number of microbatches that is in force."""
        number = self.num_microbatches or self.recipe.batch.num_microbatches
        assert number != "auto", "settled before the first batch is made"
        return cut(self.recipe, number)

    def to_json(self) -> str:
        values = {
            "recipe": self.recipe.model_dump(),
            "data": str(self.data),
            "run": str(self.run),
            "attempt": self.attempt,
            "command": self.command,
            "init": None if self.init is None else str(self.init),
            "price_per_hour": self.price_per_hour,
            "asks": self.asks,
            "most_waiting": self.most_waiting,
            "num_microbatches": self.num_microbatches,
            "recomputes": self.recomputes,
            "precision": self.precision,
            "max_cost": self.max_cost,
        }
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> "Job":
        values = json.loads(text)
        init = values["init"]
        return cls(
            Recipe.model_validate(values["recipe"]),
            Path(values["data"]).expanduser(),
            Path(values["run"]).expanduser(),
            values["attempt"],
            values["command"],
            None if init is None else Path(init).expanduser(),
            values["price_per_hour"],
            values["asks"],
            values["most_waiting"],
            values["num_microbatches"],
            values["recomputes"],
            values["precision"],
            values["max_cost"],
        )


def make_job(
    recipe: Recipe,
    data: Path,
    run: Path,
    num_workers: int,
    command: str,
    init: str | None = None,
    price_per_hour: float | None = None,
    asks: bool = False,
    most_waiting: float | None = None,
    max_cost: float | None = None,
    fork: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Job:
    """The next attempt of a run, after every check that needs no torch; makes the run folder."""
    shards = open_shards(data)
    init_weights = None
    forked = None if fork is None else find_fork(fork, RunFolder(run))
    origin = init if forked is None else str(forked)
    if origin is not None:
        model = _checked_init(origin, shards.manifest.vocab.sha256)
        shaped = _shaped_like(recipe, model.recipe, f"recipe {recipe.name} with the model of {origin}")
        if shaped.model != recipe.model:
            say(f"the sizes of the model are those of {origin}, not of recipe {recipe.name}")
        recipe = shaped
        init_weights = model.weights_path if forked is None else None
    _check_workers(recipe, num_workers)
    folder = create_run_folder(run)
    refuse_running(folder)
    attempt = 1
    if folder.manifest_path.exists():
        manifest = read_manifest(folder)
        check_same_run(manifest, recipe, shards.manifest.fingerprint, run)
        attempt = max((entry.attempt for entry in manifest.attempts), default=0) + 1
    elif forked is not None:
        copy_fork(forked, folder)
    asks = asks and attempt == 1  # whoever goes on with a run has agreed to it before
    told = Job(recipe, data, run, attempt, command, init_weights, price_per_hour, asks, most_waiting)
    return replace(told, max_cost=max_cost)


def open_run(recipe: dict[str, Any], data: str, run: str, **given: Any) -> dict[str, Any]:
    """`make_job` for somebody on another machine: the job as JSON, and what there is to say about it."""
    notes: list[str] = []
    paths = (Path(data).expanduser(), Path(run).expanduser())
    job = make_job(Recipe.model_validate(recipe), *paths, say=notes.append, **given)
    # Paths stay as they were given: a home folder may lie elsewhere on the next host.
    told = replace(job, data=Path(data), run=Path(run))
    return {
        "job": told.to_json(),
        "attempt": job.attempt,
        "init": job.init and str(job.init),
        "notes": notes,
        "reached_limit": job.reached_limit(),
    }


def _check_workers(recipe: Recipe, num_workers: int) -> None:
    """Every one must have something to do."""
    number = recipe.batch.num_microbatches
    if number == "auto":
        check_room(recipe, num_workers, num_workers)
    elif num_workers > number:
        raise DragomanError(
            f"{num_workers} workers but only {number} microbatches a step",
            f"give fewer workers, or --set batch.num_microbatches={num_workers}",
        )


def _checked_init(init: str, vocab_sha256: str) -> ModelFolder:
    model = find_model(init)
    if file_sha256(model.vocab_path) != vocab_sha256:
        raise DragomanError(
            f"the data was encoded with another vocabulary than {init}",
            f"prepare it again with --vocab {model.vocab_path}",
        )
    return model


def _shaped_like(recipe: Recipe, other: Recipe, origin: str) -> Recipe:
    """The recipe with the other's model; dropout, which is no matter of shape, stays its own."""
    dropout = recipe.model.model_dump(include={"dropout", "ffn_dropout"})
    return parse_recipe({**recipe.model_dump(), "model": {**other.model.model_dump(), **dropout}}, origin)


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
