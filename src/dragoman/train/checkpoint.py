"""Checkpoints: written whole or not at all, verified when read, and thinned out.

A checkpoint is a folder: weights, optimizer, state, recipe and vocabulary, everything needed to go on or to translate.
Every host writes it to its own disk: the part that all ranks share, and `rank-NNN` for what is a rank's own.
"""

import json
import os
import shutil
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import tomli_w
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError

from dragoman.config import Recipe
from dragoman.dist.sync import Sync
from dragoman.dist.world import World
from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256
from dragoman.model.weights import average_files, load_tensors, load_weights, save_tensors
from dragoman.run.checkpoint_files import (
    OPTIMIZER,
    RECIPE,
    STATE,
    VOCAB,
    WEIGHTS,
    find_damage,
    rank_file,
    state_digest,
)
from dragoman.run.folder import RunFolder
from dragoman.train.optim import Optimizer
from dragoman.train.progress import Progress

PREFIX = "optimizer."  # of a replica's averages in its rank's file


class Checkpoints:
    """Saves and restores one run. All ranks call its methods together."""

    def __init__(
        self,
        folder: RunFolder,
        world: World,
        model: torch.nn.Module,
        optimizer: Optimizer,
        sync: Sync,
        recipe: Recipe,
        vocab_path: Path,
    ) -> None:
        self._folder = folder
        self._world = world
        self._model = model
        self._optimizer = optimizer
        self._sync = sync
        self._recipe = recipe
        self._vocab_path = vocab_path
        self._is_writer = _writes_own_disk(folder, world)

    def save(self, progress: Progress) -> dict[str, int]:
        """Write the checkpoint of this step and make `last` lead to it; file names with their sizes."""
        final = self._folder.step_checkpoint(progress.step)
        fresh = _fresh(final)
        own = self._own_tensors()
        with self._sync.shared_weights(), self._world.together(), _told(final):
            if self._is_writer:
                tensors = {WEIGHTS: dict(self._model.state_dict())}
                if not self._sync.has_replicas:
                    tensors[OPTIMIZER] = self._optimizer.tensors()
                _begin(fresh, tensors, self._recipe, self._vocab_path)
        if own:
            with self._world.together(), _told(final):
                save_tensors(own, fresh / rank_file(self._world.rank))
        with self._world.together(), _told(final):
            if not self._is_writer:
                return {}
            sizes = _seal(fresh, final, asdict(progress))
            self._folder.set_pointer("last", progress.step)
            self._thin_out(progress)
            return sizes

    def _own_tensors(self) -> dict[str, torch.Tensor]:
        own = self._sync.state()
        if self._sync.has_replicas:
            averages = self._optimizer.tensors()
            own |= {PREFIX + name: tensor for name, tensor in averages.items()}
        return own

    def _thin_out(self, progress: Progress) -> None:
        config = self._recipe.checkpoint
        keep_checkpoints(self._folder, max(config.keep_last, config.average_last), progress)

    def save_average(self) -> None:
        """`checkpoints/average`: the mean of the newest checkpoints' weights, to translate with."""
        with self._world.together():
            if self._world.is_first and self._recipe.checkpoint.average_last:
                save_average(self._folder, self._recipe.checkpoint.average_last, self._recipe, self._vocab_path)

    def restore(self) -> tuple[Progress, list[str]]:
        """Go on from the newest whole checkpoint of the first host, or start afresh; notes say what was passed over."""
        here, notes = _newest_whole(self._folder)
        step = self._world.gather(here)[0]
        if step is None:
            self._sync.load_state({})
            return Progress(), notes
        path = self._folder.step_checkpoint(step)
        is_here = step == here or find_damage(path) is None
        progress = self._world.gather(read_progress(path) if is_here else None)[0]
        self._restore_weights(path, is_here)
        notes += self._restore_own(path, is_here)
        gathered = self._world.gather(notes)
        return Progress(**progress), list(dict.fromkeys(note for part in gathered for note in part))

    def _restore_weights(self, path: Path, is_here: bool) -> None:
        if is_here:
            load_weights(self._model, path / WEIGHTS)
        if self._world.any(not is_here):
            for tensor in self._model.state_dict().values():
                self._world.broadcast(tensor)

    def _restore_own(self, path: Path, is_here: bool) -> list[str]:
        """Optimizer and exchange: from this rank's own file, the shared one, or, where both are gone, from rank 0."""
        own_path, shared_path = path / rank_file(self._world.rank), path / OPTIMIZER
        own = load_tensors(own_path) if is_here and own_path.exists() else {}
        averages = {name.removeprefix(PREFIX): own.pop(name) for name in list(own) if name.startswith(PREFIX)}
        if is_here and shared_path.exists():
            averages = load_tensors(shared_path)
        elif not self._sync.has_replicas and not self._world.is_first:
            averages = {}  # replicas of an earlier attempt: from now on all go by the first
        if self._world.any(not averages):
            firsts = averages or self._optimizer.tensors()
            # A file may have a loss scale that a rank does without, or lack one: what everybody has, in one order.
            names = set(firsts).intersection(*self._world.gather(list(firsts)))
            firsts = {
                name: self._world.broadcast(firsts[name].to(self._world.device).clone()) for name in sorted(names)
            }
            averages = averages or firsts
        self._optimizer.load(averages)
        expected = self._sync.state().keys() if not own else ()
        self._sync.load_state(own)
        if expected:
            return [f"rank {self._world.rank} has no state of its own in {path.name}: its exchange starts anew"]
        return []


def _writes_own_disk(folder: RunFolder, world: World) -> bool:
    """One rank per disk writes. Hosts may share one (NFS): there only the first host's rank does."""
    mark = folder.checkpoints_path / ".writer"
    token = world.gather(uuid.uuid4().hex)[0]
    with world.together(), _told(folder.checkpoints_path):
        folder.checkpoints_path.mkdir(parents=True, exist_ok=True)
        if world.is_first:
            mark.write_text(token, encoding="utf-8")
    with world.together():
        shares_first_disk = mark.exists() and mark.read_text(encoding="utf-8") == token
    with world.together():
        if world.is_first:
            mark.unlink()
    return world.is_first or (world.local_rank == 0 and not shares_first_disk)


def _newest_whole(folder: RunFolder) -> tuple[int | None, list[str]]:
    notes: list[str] = []
    for step in reversed(folder.step_checkpoints()):
        path = folder.step_checkpoint(step)
        problem = find_damage(path)
        if problem is None:
            return step, notes
        notes.append(f"checkpoint {path.name} is damaged ({problem}): using the one before")
    return None, notes


def read_progress(path: Path) -> dict[str, object]:
    """Of a whole checkpoint, whose state may still have been written by a stranger."""
    try:
        return asdict(TypeAdapter(Progress).validate_json((path / STATE).read_bytes()))
    except (OSError, ValidationError):
        raise DragomanError(f"{path / STATE} does not say how far the run came", "remove that checkpoint") from None


def save_average(folder: RunFolder, num_last: int, recipe: Recipe, vocab_path: Path) -> dict[str, int]:
    """The mean of the newest checkpoints' weights as a checkpoint of its own, without an optimizer."""
    steps = folder.step_checkpoints()[-num_last:]
    final = folder.average_checkpoint
    with _told(final):
        weights = average_files([folder.step_checkpoint(step) / WEIGHTS for step in steps])
        _begin(_fresh(final), {WEIGHTS: weights}, recipe, vocab_path)
        return _seal(_fresh(final), final, {"averaged_steps": steps, "step": max(steps)})


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


def _fresh(final: Path) -> Path:
    """The temporary name: no reader ever meets half a checkpoint."""
    return final.with_name(f".{final.name}.tmp")


def _begin(fresh: Path, tensors: dict[str, dict[str, torch.Tensor]], recipe: Recipe, vocab: Path) -> None:
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name, values in tensors.items():
        save_tensors(values, fresh / name)
    (fresh / RECIPE).write_text(tomli_w.dumps(recipe.model_dump(exclude_none=True)), encoding="utf-8")
    shutil.copyfile(vocab, fresh / VOCAB)


def _seal(fresh: Path, final: Path, state: dict[str, object]) -> dict[str, int]:
    """Checksums, everything synced, then the final name."""
    files = {path.name: {"bytes": path.stat().st_size, "sha256": file_sha256(path)} for path in sorted(fresh.iterdir())}
    state = {**state, "files": files}
    text = json.dumps({**state, "sha256": state_digest(state)}, indent=2)
    (fresh / STATE).write_text(text + "\n", encoding="utf-8")
    sizes = {path.name: path.stat().st_size for path in sorted(fresh.iterdir())}
    for path in (*fresh.iterdir(), fresh):
        _flush(path)
    shutil.rmtree(final, ignore_errors=True)
    fresh.rename(final)
    _flush(final.parent)
    return sizes


@contextmanager
def _told(final: Path) -> Generator[None]:
    """A full disk is the user's to mend, and nothing half-written stays."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        shutil.rmtree(_fresh(final), ignore_errors=True)
        raise DragomanError(
            f"cannot write the checkpoint {final}: {getattr(error, 'strerror', None) or error}",
            "make room on that disk and give the same command again",
        ) from None


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
