"""Checkpoints: written whole or not at all, verified when read, and thinned out.

A checkpoint is a folder: weights, optimizer, state, recipe and vocabulary, everything needed to go on or to translate.
"""

import hashlib
import json
import math
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import tomli_w
import torch
from safetensors import SafetensorError

from dragoman.config import Recipe
from dragoman.errors import DragomanError
from dragoman.model.weights import average_files, load_tensors, load_weights, save_tensors
from dragoman.run.folder import Pointer, RunFolder
from dragoman.run.records import EvalRecord
from dragoman.train.optim import load_optimizer_tensors, optimizer_tensors

WEIGHTS, OPTIMIZER, STATE, RECIPE, VOCAB = (
    "weights.safetensors",
    "optimizer.safetensors",
    "state.json",
    "recipe.toml",
    "vocab.model",
)


@dataclass
class Progress:
    """How far a run has come: all of its state beside tensors. Batches and seeds follow from the step."""

    step: int = 0
    target_tokens: int = 0
    trained_seconds: float = 0.0
    best_loss: float | None = None
    best_bleu: float | None = None
    best_loss_step: int = 0
    best_bleu_step: int = 0
    num_evals_without_gain: int = 0

    def note_evaluation(self, record: EvalRecord) -> list[Pointer]:
        """Take in the first dev set's result; which pointers now lead to this step."""
        gains: list[Pointer] = []
        # A first loss that is no number must not become the best: nothing is smaller than it.
        if record.loss < (math.inf if self.best_loss is None else self.best_loss):
            self.best_loss, self.best_loss_step = record.loss, record.step
            gains.append("best-loss")
        if record.bleu is not None and (self.best_bleu is None or record.bleu > self.best_bleu):
            self.best_bleu, self.best_bleu_step = record.bleu, record.step
            gains.append("best-bleu")
        self.num_evals_without_gain = 0 if "best-loss" in gains else self.num_evals_without_gain + 1
        return gains


class SaveTimer:
    """Says when the last save is too long ago. Rank 0's word counts: clocks of ranks differ."""

    def __init__(self, every_minutes: float) -> None:
        self._seconds = every_minutes * 60
        self.reset()

    def is_due(self) -> bool:
        return self._seconds > 0 and time.monotonic() - self._since >= self._seconds

    def reset(self) -> None:
        self._since = time.monotonic()


def save_checkpoint(
    folder: RunFolder,
    progress: Progress,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    vocab_path: Path,
) -> dict[str, int]:
    """Write the checkpoint of this step and make `last` lead to it; file names with their sizes."""
    final = folder.step_checkpoint(progress.step)
    tensors = {WEIGHTS: dict(model.state_dict()), OPTIMIZER: optimizer_tensors(model, optimizer)}
    sizes = _write_folder(final, tensors, asdict(progress), recipe, vocab_path)
    folder.set_pointer("last", progress.step)
    return sizes


def save_average(folder: RunFolder, num_last: int, recipe: Recipe, vocab_path: Path) -> dict[str, int]:
    """`checkpoints/average`: the mean of the newest checkpoints' weights, to translate with."""
    steps = folder.step_checkpoints()[-num_last:]
    weights = average_files([folder.step_checkpoint(step) / WEIGHTS for step in steps])
    state = {"averaged_steps": steps, "step": max(steps)}
    return _write_folder(folder.average_checkpoint, {WEIGHTS: weights}, state, recipe, vocab_path)


def restore_checkpoint(
    folder: RunFolder, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Progress, list[str]]:
    """Go on from the newest checkpoint that is whole, or start afresh; notes say what was passed over."""
    notes: list[str] = []
    for step in reversed(folder.step_checkpoints()):
        path = folder.step_checkpoint(step)
        problem = find_damage(path)
        if problem is not None:
            notes.append(f"checkpoint {path.name} is damaged ({problem}): using the one before")
            continue
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        load_weights(model, path / WEIGHTS)
        load_optimizer_tensors(model, optimizer, load_tensors(path / OPTIMIZER))
        known = Progress.__dataclass_fields__
        return Progress(**{key: value for key, value in state.items() if key in known}), notes
    return Progress(), notes


def find_damage(path: Path) -> str | None:
    """What is wrong with a checkpoint folder, by the checksums in its state; None if it is whole."""
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        if state.pop("sha256") != _digest(state):
            return f"{STATE} has other values than were written"
        for name, entry in state["files"].items():
            if not (path / name).is_file():
                return f"{name} is missing"
            if _sha256(path / name) != entry["sha256"]:
                return f"{name} has other bytes than were written"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{STATE} cannot be read: {error}"
    return None


def keep_checkpoints(folder: RunFolder, num_last: int, progress: Progress) -> None:
    """Point at the best, keep them and the newest, remove the rest."""
    steps = folder.step_checkpoints()
    if progress.best_loss_step in steps:
        folder.set_pointer("best-loss", progress.best_loss_step)
    if progress.best_bleu_step in steps:
        folder.set_pointer("best-bleu", progress.best_bleu_step)
    for step in steps[:-num_last]:
        if step not in (progress.best_loss_step, progress.best_bleu_step):
            shutil.rmtree(folder.step_checkpoint(step), ignore_errors=True)


def _write_folder(
    final: Path, tensors: dict[str, dict[str, torch.Tensor]], state: dict[str, object], recipe: Recipe, vocab: Path
) -> dict[str, int]:
    """Everything under a temporary name, synced, then renamed: no reader ever meets half a checkpoint."""
    fresh = final.with_name(f".{final.name}.tmp")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        for name, values in tensors.items():
            save_tensors(values, fresh / name)
        values = recipe.model_dump(exclude_none=True)
        (fresh / RECIPE).write_text(tomli_w.dumps(values), encoding="utf-8")
        shutil.copyfile(vocab, fresh / VOCAB)
        files = {path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)} for path in sorted(fresh.iterdir())}
        state = {**state, "files": files}
        text = json.dumps({**state, "sha256": _digest(state)}, indent=2)
        (fresh / STATE).write_text(text + "\n", encoding="utf-8")
        sizes = {path.name: path.stat().st_size for path in sorted(fresh.iterdir())}
        for path in (*fresh.iterdir(), fresh):
            _sync(path)
        shutil.rmtree(final, ignore_errors=True)
        fresh.rename(final)
        _sync(final.parent)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise DragomanError(
            f"cannot write the checkpoint {final}: {getattr(error, 'strerror', None) or error}",
            "make room on that disk and give the same command again",
        ) from None
    return sizes


def _digest(state: dict[str, object]) -> str:
    """Checksum of the state's values; those of the other files are among them."""
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
