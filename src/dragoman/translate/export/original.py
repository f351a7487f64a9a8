"""What is exported: a checkpoint, or the mean of a run's last ones. Weights are verified before they are used."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.run.checkpoint_files import RECIPE, STATE, VOCAB, WEIGHTS, is_whole_file
from dragoman.run.folder import RunFolder, step_name
from dragoman.run.reader import read_manifest
from dragoman.translate.export_folder import Origin, is_export
from dragoman.translate.model_folder import ModelFolder, find_model
from dragoman.units import plural


@dataclass(frozen=True)
class Original:
    """A model to export, with where it came from."""

    folder: ModelFolder
    run: RunFolder | None
    languages: tuple[str, str]  # "" where nobody says
    origin: Origin


def find_original(model: Path, num_averaged: int | None, is_forced: bool, workplace: Path) -> Original:
    """The checkpoint that MODEL names; with a number, the mean of so many, which is written to the workplace.

    Weights that are not those the run wrote are refused unless it is forced, and then the origin says so.
    """
    if is_export(model):
        raise DragomanError(f"{model} is an export already", "name the run or the checkpoint that it was made from")
    if num_averaged is None:
        return _checkpoint(find_model(model), is_forced)
    return _average(model, num_averaged, is_forced, workplace)


def _checkpoint(folder: ModelFolder, is_forced: bool) -> Original:
    is_changed = _is_changed([folder.path], is_forced)
    state = _read_state(folder.path)
    averaged = state.get("averaged_steps", [])
    origin = Origin(
        recipe=folder.recipe.name,
        run=_name(folder.run),
        step=state.get("step"),
        num_averaged=len(averaged) if averaged else 1,
        has_changed_weights=is_changed,
    )
    return Original(folder, folder.run, folder.languages, origin)


def _average(model: Path, num_averaged: int, is_forced: bool, workplace: Path) -> Original:
    from dragoman.model.weights import average_files, save_tensors

    run = RunFolder(model)
    if not run.manifest_path.is_file():
        raise DragomanError(f"--average needs a run, and {model} is none", "name the folder of a run")
    paths = _last_checkpoints(run, num_averaged)
    is_changed = _is_changed(paths, is_forced)
    workplace.mkdir()
    save_tensors(average_files([path / WEIGHTS for path in paths]), workplace / WEIGHTS)
    for name in (RECIPE, VOCAB):
        shutil.copyfile(paths[-1] / name, workplace / name)
    folder = ModelFolder(workplace)
    origin = Origin(
        recipe=folder.recipe.name,
        run=_name(run),
        step=run.step_checkpoints()[-1],
        num_averaged=num_averaged,
        has_changed_weights=is_changed,
    )
    return Original(folder, run, ModelFolder(paths[-1].resolve()).languages, origin)


def _last_checkpoints(run: RunFolder, number: int) -> list[Path]:
    steps = run.step_checkpoints()
    if len(steps) < number:
        raise DragomanError(
            f"{run.path} has {plural(len(steps), 'checkpoint')}, not {number}",
            f"--average {len(steps)}" if len(steps) > 1 else "leave --average out" if steps else "train it first",
        )
    lacking = [step_name(step) for step in steps[-number:] if not (run.step_checkpoint(step) / WEIGHTS).is_file()]
    if lacking:
        problem = f"of the last {number} checkpoints these have no weights: {', '.join(lacking)}"
        raise DragomanError(problem, "fetch them again, or average fewer")
    return [run.step_checkpoint(step) for step in steps[-number:]]


def _is_changed(paths: Sequence[Path], is_forced: bool) -> bool:
    """By the checksums of their states; a model from elsewhere may have none."""
    changed = [path for path in paths if (path / STATE).is_file() and not is_whole_file(path, WEIGHTS)]
    if changed and not is_forced:
        raise DragomanError(
            f"{changed[0] / WEIGHTS} has other bytes than the run wrote",
            "use another checkpoint; if the change was meant, add --force",
        )
    return bool(changed)


def _read_state(path: Path) -> dict[str, Any]:
    try:
        return json.loads((path / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _name(run: RunFolder | None) -> str | None:
    return read_manifest(run).name if run is not None else None
