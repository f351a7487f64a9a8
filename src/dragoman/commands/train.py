"""`dragoman train`: check everything that can be wrong, then start the workers. No torch in this process."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.config import Recipe
    from dragoman.translate.model_folder import ModelFolder


def train(
    recipe: Annotated[str, typer.Argument(help="A shipped recipe, or a TOML file.")] = "small",
    data: Annotated[Path | None, typer.Option(help="Folder made by `dragoman prepare`.")] = None,
    run: Annotated[Path | None, typer.Option(help="Run folder; one that exists goes on where it was.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine; one per GPU where there are.")] = 1,
    init: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Start from this run's or checkpoint's weights.")
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one setting of the recipe.")
    ] = None,
    help_recipe: Annotated[bool, typer.Option("--help-recipe", help="Show every setting of a recipe.")] = False,
) -> None:
    """Train a model; the same command again goes on where it was."""
    from dragoman.launch.local import start_workers

    if help_recipe:
        _show_settings()
        return
    if data is None or run is None:
        missing = "--data" if data is None else "--run"
        raise DragomanError(f"{missing} is missing", "dragoman train RECIPE --data DIR --run DIR")
    argument = check_job(recipe, changes or [], data, run, workers, init)
    code = start_workers("dragoman.train.worker", [argument], workers)
    if code:
        raise typer.Exit(code)


def check_job(recipe_name: str, changes: list[str], data: Path, run: Path, workers: int, init: str | None) -> str:
    """Everything a worker needs, as JSON, after every check that needs no torch."""
    from dragoman.data.shards import open_shards
    from dragoman.recipe import load_recipe
    from dragoman.run.folder import create_run_folder
    from dragoman.run.reader import read_manifest
    from dragoman.train.job import Job, check_same_run

    recipe = load_recipe(recipe_name, changes)
    shards = open_shards(data)
    init_weights = None
    if init is not None:
        model = _checked_init(init, shards.manifest.vocab.sha256)
        shaped = _shaped_like(recipe, model.recipe, f"recipe {recipe_name} with --init {init}")
        if shaped.model != recipe.model:
            typer.echo(f"the sizes of the model are those of {init}, not of recipe {recipe_name}", err=True)
        recipe = shaped
        init_weights = model.weights_path
    if workers > recipe.batch.num_microbatches:
        raise DragomanError(
            f"{workers} workers but only {recipe.batch.num_microbatches} microbatches a step",
            f"give fewer workers, or --set batch.num_microbatches={workers}",
        )
    folder = create_run_folder(run)
    attempt = 1
    if folder.manifest_path.exists():
        manifest = read_manifest(folder)
        check_same_run(manifest, recipe, shards.manifest.fingerprint, run)
        attempt = max((entry.attempt for entry in manifest.attempts), default=0) + 1
    command = shlex.join(["dragoman", *sys.argv[1:]])
    return Job(recipe, data, run, attempt, command, init_weights).to_json()


def _checked_init(init: str, vocab_sha256: str) -> "ModelFolder":
    from dragoman.data.manifest import file_sha256
    from dragoman.translate.model_folder import find_model

    model = find_model(init)
    if file_sha256(model.vocab_path) != vocab_sha256:
        raise DragomanError(
            f"the data was encoded with another vocabulary than {init}",
            f"prepare it again with --vocab {model.vocab_path}",
        )
    return model


def _shaped_like(recipe: "Recipe", other: "Recipe", origin: str) -> "Recipe":
    """The recipe with the other's model; dropout, which is no matter of shape, stays its own."""
    from dragoman.recipe import parse_recipe

    dropout = recipe.model.model_dump(include={"dropout", "ffn_dropout"})
    return parse_recipe({**recipe.model_dump(), "model": {**other.model.model_dump(), **dropout}}, origin)


def _show_settings() -> None:
    from rich.console import Console
    from rich.table import Table

    from dragoman.recipe import recipe_fields, shipped_recipes

    table = Table("key", "type", "default", "meaning", box=None, header_style="bold")
    for row in recipe_fields():
        table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(f"\nShipped recipes: {', '.join(shipped_recipes())}. Change a setting with --set key=value.")
