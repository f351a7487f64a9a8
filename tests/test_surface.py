"""What users and scripts rely on, frozen: commands and options, recipe keys, files and their fields, Python names.

After a change that is meant: python tests/test_surface.py --renew, and say it in CHANGELOG.md.
"""

import dataclasses
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

import dragoman
from dragoman import cli
from dragoman.data import manifest as data_manifest
from dragoman.errors import CheckFailed, DragomanError
from dragoman.recipe import recipe_fields, shipped_recipes
from dragoman.run import checkpoint_files, records
from dragoman.run.folder import AVERAGE, POINTERS, RunFolder
from dragoman.train.progress import Progress

GOLDEN = Path(__file__).parent / "golden" / "surface.json"
HOW = "if that is meant: python tests/test_surface.py --renew, and say it in CHANGELOG.md"
RECORDS = (
    records.Manifest,
    records.DataSummary,
    records.SideSize,
    records.Host,
    records.Attempt,
    records.StepRecord,
    records.TimingRecord,
    records.EvalRecord,
    records.EvalSentence,
    records.Event,
)


def command_line() -> dict[str, Any]:
    """Every command with its arguments and options, as the parser knows them."""
    argv, sys.argv = sys.argv, ["dragoman", *cli.COMMANDS]  # a command is imported only if it is on the command line
    try:
        group: Any = typer.main.get_command(cli.app)
        commands = {name: group.get_command(None, name) for name in cli.COMMANDS}
    finally:
        sys.argv = argv
    return {"": parameters(group), **{name: parameters(command) for name, command in commands.items()}}


def parameters(command: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for parameter in command.params:
        is_option = parameter.param_type_name == "option"
        names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.name.upper()]
        found[", ".join(names)] = {
            "required": parameter.required,
            "default": str(parameter.default) if parameter.default else None,
            "repeats": bool(getattr(parameter, "multiple", False)),
            "takes_value": not getattr(parameter, "is_flag", False),
        }
    return found


def run_folder() -> dict[str, Any]:
    folder = RunFolder(Path("RUN"))
    paths = {name: str(getattr(folder, name)) for name, value in vars(RunFolder).items() if isinstance(value, property)}
    paths |= {"timing_path": str(folder.timing_path(3)), "eval_path": str(folder.eval_path(40, "a/b"))}
    paths |= {"step_checkpoint": str(folder.step_checkpoint(44_000))}
    return {
        "schema": records.SCHEMA,
        "paths": paths,
        "pointers": [*POINTERS, AVERAGE],
        "checkpoint": sorted(
            getattr(checkpoint_files, name) for name in ("WEIGHTS", "OPTIMIZER", "STATE", "RECIPE", "VOCAB")
        ),
        "progress": [field.name for field in dataclasses.fields(Progress)],
        "events": sorted(get_args(records.EventKind)),
        "records": {kind.__name__: [field.name for field in dataclasses.fields(kind)] for kind in RECORDS},
    }


def data_folder() -> dict[str, Any]:
    schema = data_manifest.Manifest.model_json_schema(by_alias=True)
    kinds = {"Manifest": schema, **schema["$defs"]}
    # The recipe's sections are frozen with the recipe.
    fields = {name: sorted(kind["properties"]) for name, kind in kinds.items() if not name.endswith("Config")}
    return {"schema": data_manifest.SCHEMA, "manifest": fields}


def python_names() -> dict[str, str]:
    found = {name: getattr(dragoman, name) for name in dragoman.__all__ if name != "__version__"}
    found["Translator.translate"] = found["Translator"].translate
    return {
        name: ", ".join(map(parameter_text, inspect.signature(value).parameters.values()))
        for name, value in found.items()
    }


def parameter_text(parameter: inspect.Parameter) -> str:
    """Its name, and whether it may be left out."""
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name}=..."


def surface() -> dict[str, Any]:
    return {
        "commands": command_line(),
        "recipes": shipped_recipes(),
        "recipe keys": {key: f"{kind} = {default}" for key, kind, default, _ in recipe_fields()},
        "run folder": run_folder(),
        "data folder": data_folder(),
        "python": python_names(),
    }


def flattened(value: Any, path: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, so that a difference has a name."""
    if not isinstance(value, dict):
        return {path: value}
    return {key: each for name, inner in value.items() for key, each in flattened(inner, f"{path} / {name}").items()}


@pytest.mark.parametrize("part", ["commands", "recipes", "recipe keys", "run folder", "data folder", "python"])
def test_the_surface_is_the_one_on_record(part):
    here, there = flattened(surface()[part], part), flattened(json.loads(GOLDEN.read_text())[part], part)
    gone = [f"gone: {key}" for key in there if key not in here]
    new = [f"new: {key}" for key in here if key not in there]
    changed = [f"{key}: {there[key]} became {here[key]}" for key in here if key in there and here[key] != there[key]]
    assert not gone + new + changed, "\n".join([*gone, *new, *changed, HOW])


def test_the_python_names():
    assert sorted(dragoman.__all__) == ["Translator", "__version__", "load_recipe", "open_run"]
    assert dir(dragoman) == sorted(dragoman.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dragoman.nothing


def test_the_python_names_do_what_they_say(tmp_path):
    assert dragoman.load_recipe("tiny", ["train.seed=5"]).train.seed == 5
    for use in (dragoman.open_run, dragoman.Translator):
        with pytest.raises(DragomanError, match="there is no"):
            use(tmp_path / "nothing")


def test_importing_the_package_imports_nothing_heavy():
    heavy = {"torch", "pydantic", "numpy", "typer"}
    code = f"import sys, dragoman; dragoman.__version__; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_is_that_of_the_distribution():
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert f'\nversion = "{dragoman.__version__}"\n' in project


def test_exit_codes():
    assert (DragomanError.exit_code, CheckFailed.exit_code) == (2, 1)


if __name__ == "__main__":
    if sys.argv[1:] != ["--renew"]:
        sys.exit(__doc__)
    GOLDEN.write_text(json.dumps(surface(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
