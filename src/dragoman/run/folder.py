"""The run folder: where everything lies, and the pointers to its checkpoints.

Paths only: no record is read or written here.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote

from dragoman.containment import is_inside
from dragoman.errors import DragomanError

Pointer = Literal["best-loss", "best-bleu", "last"]
POINTERS: tuple[Pointer, ...] = ("best-loss", "best-bleu", "last")
AVERAGE = "average"
NAME_A_RUN = "name the folder given to `dragoman train --run`"


@dataclass(frozen=True)
class RunFolder:
    """Names of a run's files. Being one says nothing about what exists on disk."""

    path: Path

    @property
    def manifest_path(self) -> Path:
        return self.path / "manifest.json"

    @property
    def steps_path(self) -> Path:
        return self.path / "steps.jsonl"

    @property
    def evals_path(self) -> Path:
        return self.path / "evals.jsonl"

    @property
    def events_path(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def profile_path(self) -> Path:
        return self.path / "profile.json"

    @property
    def prediction_path(self) -> Path:
        return self.path / "prediction.json"

    @property
    def log_path(self) -> Path:
        return self.path / "log.txt"

    @property
    def tensorboard_path(self) -> Path:
        return self.path / "tensorboard"

    @property
    def checkpoints_path(self) -> Path:
        return self.path / "checkpoints"

    @property
    def report_path(self) -> Path:
        return self.path / "report.html"

    @property
    def lock_path(self) -> Path:
        return self.path / ".lock"

    @property
    def average_checkpoint(self) -> Path:
        """A checkpoint of its own, not a pointer: no single step has these weights."""
        return self.checkpoints_path / AVERAGE

    def timing_path(self, rank: int) -> Path:
        return self.path / f"timing.rank-{rank:03d}.jsonl"

    def timing_paths(self) -> list[Path]:
        """Those that exist, in the order of ranks."""
        return sorted(self.path.glob("timing.rank-*.jsonl"))

    def hang_path(self, rank: int) -> Path:
        return self.path / f"hang.rank-{rank:03d}.txt"

    def system_path(self, host: str) -> Path:
        return self.path / f"system.{quote(host, safe='')}.jsonl"

    def system_paths(self) -> list[Path]:
        """Those that exist, by host."""
        return sorted(self.path.glob("system.*.jsonl"))

    def eval_folder(self, step: int) -> Path:
        return self.path / "evals" / step_name(step)

    def eval_path(self, step: int, dev_set: str) -> Path:
        """Dev sets may be named like paths (`wmt14/full`); quoted, the name stays one file."""
        return self.eval_folder(step) / f"{quote(dev_set, safe='')}.jsonl"

    def step_checkpoint(self, step: int) -> Path:
        return self.checkpoints_path / step_name(step)

    def step_checkpoints(self) -> list[int]:
        """Steps that have a checkpoint folder, in order."""
        if not self.checkpoints_path.is_dir():
            return []
        folders = (entry for entry in self.checkpoints_path.iterdir() if not entry.is_symlink())
        steps = (parse_step(entry.name) for entry in folders)
        return sorted(step for step in steps if step is not None)

    def set_pointer(self, name: Pointer, step: int) -> None:
        """Make `checkpoints/NAME` lead to that step, at once or not at all."""
        link = self.checkpoints_path / name
        fresh = self.checkpoints_path / f".{name}.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(step_name(step), target_is_directory=True)
        fresh.replace(link)

    def pointed_step(self, name: Pointer) -> int | None:
        """The step that `checkpoints/NAME` leads to; None where either is missing, or the pointer leads elsewhere."""
        link = self.checkpoints_path / name
        if not link.is_symlink() or not is_inside(self.checkpoints_path, name) or not link.exists():
            return None
        return parse_step(link.readlink().name)


def step_name(step: int) -> str:
    """`step-00044000`: names sort as their steps do."""
    return f"step-{step:08d}"


def parse_step(name: str) -> int | None:
    """The step of such a name, else None."""
    digits = name.removeprefix("step-")
    return int(digits) if digits != name and digits.isdecimal() else None


def create_run_folder(path: str | Path) -> RunFolder:
    """Make the folder, or take it as it is when it is empty or already a run; anything else is refused."""
    folder = RunFolder(Path(path))
    try:
        if folder.path.exists() and not folder.path.is_dir():
            raise DragomanError(f"{folder.path} is a file, not a folder", "name another run folder")
        folder.path.mkdir(parents=True, exist_ok=True)
        is_foreign = not folder.manifest_path.exists() and any(folder.path.iterdir())
        if is_foreign and not folder.checkpoints_path.is_dir():
            raise DragomanError(f"{folder.path} holds other files already", "name a new folder for the run")
        folder.checkpoints_path.mkdir(exist_ok=True)
    except OSError as error:
        problem = f"cannot write to {folder.path}: {error.strerror}"
        raise DragomanError(problem, "name another run folder") from None
    return folder


def open_run_folder(path: str | Path) -> RunFolder:
    """An existing run folder; one without a manifest is none."""
    folder = RunFolder(Path(path))
    try:
        if not folder.path.is_dir():
            raise DragomanError(f"there is no folder {folder.path}", NAME_A_RUN)
        if not folder.manifest_path.is_file():
            raise DragomanError(f"{folder.path} is not a run folder: it has no manifest.json", NAME_A_RUN)
    except OSError as error:
        raise DragomanError(f"cannot read {folder.path}: {error.strerror}", NAME_A_RUN) from None
    return folder


def lock_run(folder: RunFolder, patience_seconds: float = 15.0) -> IO[str]:
    """Claim the run for this process; waits a little, for workers of a killed command may still be saving."""
    held = lock_file(folder.lock_path, patience_seconds)
    if held is None:
        problem = f"{folder.path} is being trained by another process"
        raise DragomanError(problem, "wait for it, or name another run folder")
    return held


def is_locked(folder: RunFolder) -> bool:
    """Whether a worker on this machine holds the run; it does so as long as it lives."""
    return bool(is_held(folder.lock_path))


def lock_file(path: Path, patience_seconds: float) -> IO[str] | None:
    """Hold a lock until the file is closed or the process ends, however it ends; None where another has it."""
    try:
        file = path.open("w")
        is_ours = False
        try:
            is_ours = _await_lock(file, time.monotonic() + patience_seconds)
        finally:
            if not is_ours:
                file.close()
    except OSError as error:
        problem = f"cannot lock {path}: {error.strerror}"
        raise DragomanError(problem, "name a run folder that can be written, on a disk that knows locks") from None
    return file if is_ours else None


def _await_lock(file: IO[str], deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)


def is_held(path: Path) -> bool | None:
    """Whether another has that lock; None where it cannot be known: no such file, not ours, a disk without locks."""
    try:
        with path.open("rb") as file:
            # Shared: two who ask at once do not take each other for the holder.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


@contextlib.contextmanager
def replaced_file(path: Path) -> Generator[Path]:
    """A temporary name to write to; its bytes take the place of `path` when the block ends well."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield fresh
        with fresh.open("rb+") as file:
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
