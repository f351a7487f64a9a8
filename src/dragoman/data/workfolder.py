"""The work folder inside a data folder: finished pieces of unfinished work, so that an interrupted run goes on.

Knows names and states of files, not what is in them.
"""

import errno
import fcntl
import json
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from dragoman.data.manifest import MANIFEST_NAME, Manifest, read_manifest, write_atomically
from dragoman.errors import DragomanError
from dragoman.units import format_bytes

WORK_NAME = ".work"
T = TypeVar("T")
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


class InterruptedWorkError(DragomanError):
    """Stopped by something outside the input: what is done is kept, and the same command goes on."""


@dataclass(frozen=True)
class WorkFolder:
    """`OUT/.work`."""

    out: Path

    @property
    def folder(self) -> Path:
        return self.out / WORK_NAME

    @property
    def inputs(self) -> Path:
        return self.folder / "inputs"

    @property
    def chunks(self) -> Path:
        return self.folder / "chunks"

    @property
    def chunks_done(self) -> Path:
        return self.folder / "chunks.done"

    @property
    def parts(self) -> Path:
        return self.folder / "parts"

    @property
    def vocab(self) -> Path:
        return self.folder / "vocab.model"

    @property
    def vocab_facts(self) -> Path:
        return self.folder / "vocab.json"

    @property
    def evals(self) -> Path:
        return self.folder / "evals"

    @property
    def train(self) -> Path:
        return self.folder / "train"

    @property
    def seconds_path(self) -> Path:
        return self.folder / "seconds.json"

    def seconds(self) -> dict[str, float]:
        return read_record(self.seconds_path, dict[str, float]) if self.seconds_path.is_file() else {}

    @contextmanager
    def timed(self, stage: str) -> Generator[None]:
        """Adds to the stage's time, also when it is interrupted, since another attempt will go on."""
        start = time.monotonic()
        try:
            yield
        finally:
            seconds = self.seconds()
            seconds[stage] = round(seconds.get(stage, 0.0) + time.monotonic() - start, 3)
            write_atomically(self.seconds_path, json.dumps(seconds).encode())


def read_record(path: Path, kind: type[T]) -> T:
    """What is said of a finished piece; the error ends all of the unfinished work, so that the next try starts anew."""
    try:
        return cast("T", TypeAdapter(kind).validate_json(path.read_bytes()))
    except (OSError, ValidationError):
        problem = f"unfinished work of an earlier attempt is damaged: {path}"
        raise DragomanError(problem, "run the same command again: it starts anew") from None


def find_finished(out: Path, plan: str) -> Manifest | None:
    """The manifest of a folder that this very plan has already filled; another plan's folder is refused."""
    if out.exists() and not out.is_dir():
        raise DragomanError(f"{out} is a file, not a folder", "name another --out")
    if not (out / MANIFEST_NAME).is_file():
        return None
    manifest = read_manifest(out)
    if manifest.plan != plan:
        raise DragomanError(
            f"{out} holds data prepared from other input or with other settings", "name another --out, or remove it"
        )
    return manifest


@contextmanager
def open_work(out: Path, plan: str) -> Generator[WorkFolder]:
    """Make or reopen the work folder. Kept when interrupted; removed when done, or when the input is at fault."""
    work = WorkFolder(out)
    is_new_folder = not out.exists()
    plan_path = work.folder / "plan.txt"
    if plan_path.is_file():
        if plan_path.read_bytes() != plan.encode():
            raise DragomanError(
                f"{out} holds unfinished work on other input or with other settings",
                "name another --out, or remove that folder",
            )
    elif out.is_dir() and any(entry.name != WORK_NAME for entry in out.iterdir()):
        raise DragomanError(f"{out} is not empty and not a data folder", "name another --out")
    try:
        _make(work.folder)
        with _locked(work.folder / "lock", out):
            write_atomically(plan_path, plan.encode())
            for folder in (work.inputs, work.chunks, work.parts):
                folder.mkdir(exist_ok=True)
            yield work
    except InterruptedWorkError:
        raise
    except DragomanError:
        _remove(out if is_new_folder else work.folder)
        raise
    except OSError as error:
        if error.errno not in _FULL_DISK:
            raise
        raise InterruptedWorkError(
            f"no room left on the disk of {out}",
            "free some room and run the same command again: it goes on where it was",
        ) from None
    _remove(work.folder)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in _FULL_DISK:
            raise
        raise DragomanError(f"cannot write to {folder.parent}: {error.strerror}", "name another --out") from None


def check_room(out: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(out).free
    if free_bytes < needed_bytes:
        raise DragomanError(
            f"no room on the disk of {out}: about {format_bytes(needed_bytes)} needed, {format_bytes(free_bytes)} free",
            "free some room, or name an --out on another disk",
        )


@contextmanager
def _locked(path: Path, out: Path) -> Generator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InterruptedWorkError(
                f"another prepare is at work in {out}", "wait for it, or name another --out"
            ) from None
        yield


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
