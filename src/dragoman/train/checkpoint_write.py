"""How a checkpoint gets onto a disk while training goes on: copied aside, written by a thread, sealed.

No rank talks to another in here: those of a host meet in the folder that one of them seals.
"""

import json
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import tomli_w
import torch
from safetensors import SafetensorError

from dragoman.config import Recipe
from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256
from dragoman.model.weights import average_files, save_tensors
from dragoman.run.checkpoint_files import RECIPE, STATE, VOCAB, WEIGHTS, state_digest, temporary
from dragoman.run.folder import RunFolder

Files = Mapping[str, Mapping[str, torch.Tensor]]  # file -> name -> tensor
LOOK_SECONDS = 0.02
MAKE_ROOM = "make room on that disk and give the same command again"


@dataclass(frozen=True)
class Snapshot:
    """Tensors as they were at one moment, in memory of the host."""

    files: Files
    copied: torch.cuda.Event | None

    @property
    def num_bytes(self) -> int:
        return sum(self.num_bytes_of(file) for file in self.files)

    def num_bytes_of(self, file: str) -> int:
        return sum(tensor.nbytes for tensor in self.files.get(file, {}).values())

    def wait(self) -> None:
        """Until the copy is there."""
        if self.copied is not None:
            self.copied.synchronize()


class Snapshots:
    """Takes one after the other into the same memory: new memory costs more time than the copy itself."""

    def __init__(self) -> None:
        self._buffers: dict[str, dict[str, torch.Tensor]] = {}

    def take(self, files: Files) -> Snapshot:
        """Training may change the tensors once this returns; a GPU copies them after what it was told before."""
        for file, tensors in files.items():
            old = self._buffers.get(file, {})
            self._buffers[file] = {name: _copied(tensor, old.get(name)) for name, tensor in tensors.items()}
        event = None
        if any(tensor.is_cuda for tensors in files.values() for tensor in tensors.values()):
            event = torch.cuda.Event()
            event.record()
        return Snapshot({file: self._buffers[file] for file in files}, event)


def _copied(tensor: torch.Tensor, buffer: torch.Tensor | None) -> torch.Tensor:
    tensor = tensor.detach()
    if buffer is None or buffer.shape != tensor.shape or buffer.dtype != tensor.dtype:
        buffer = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
    return buffer.copy_(tensor, non_blocking=True)


def write_part(snapshot: Snapshot, fresh: Path) -> None:
    """One rank's files; each appears whole, since another rank waits for it."""
    if not snapshot.files:
        return  # the folder may have its final name already: it must not be made anew
    snapshot.wait()
    fresh.mkdir(parents=True, exist_ok=True)
    for name, tensors in snapshot.files.items():
        part = fresh / f".{name}"
        save_tensors(dict(tensors), part)
        part.rename(fresh / name)


def seal(
    fresh: Path, final: Path, recipe: Recipe, vocab: Path, awaited: Sequence[str], state: dict[str, object], off: Event
) -> dict[str, int]:
    """Add what is no tensor, wait for the files of this disk's other ranks, and give the folder its final name; names
    of its files with their sizes."""
    while not all((fresh / name).exists() for name in awaited):
        if off.wait(LOOK_SECONDS):
            raise DragomanError(f"{final.name} lacks the files of another rank")
    _add_texts(fresh, recipe, vocab)
    return _seal(fresh, final, state)


def save_average(folder: RunFolder, num_last: int, recipe: Recipe, vocab: Path) -> dict[str, int]:
    """The mean of the newest checkpoints' weights as a checkpoint of its own, without an optimizer."""
    steps = folder.step_checkpoints()[-num_last:]
    final = folder.average_checkpoint
    fresh = temporary(final, "one")
    with telling(final, fresh):
        fresh.mkdir(parents=True)
        save_tensors(average_files([folder.step_checkpoint(step) / WEIGHTS for step in steps]), fresh / WEIGHTS)
        _add_texts(fresh, recipe, vocab)
        return _seal(fresh, final, {"averaged_steps": steps, "step": max(steps)})


def clear_temporaries(folder: RunFolder) -> None:
    """What killed processes left half-written."""
    for path in folder.checkpoints_path.glob(".*.tmp"):
        shutil.rmtree(path, ignore_errors=True)


def _add_texts(fresh: Path, recipe: Recipe, vocab: Path) -> None:
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
def telling(final: Path, fresh: Path) -> Generator[None]:
    """A full disk is the user's to mend, and nothing half-written stays."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise DragomanError(
            f"cannot write the checkpoint {final}: {getattr(error, 'strerror', None) or error}", MAKE_ROOM
        ) from None


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
