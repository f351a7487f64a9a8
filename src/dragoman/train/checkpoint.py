"""Checkpoints: written while training goes on, whole or not at all, verified when read.

A checkpoint is a folder: weights, optimizer, state, recipe and vocabulary, everything needed to go on or to translate.
Every host writes it to its own disk: the part that all ranks share, and `rank-NNN` for what is a rank's own. It counts
once every host has written it: then, and not before, `last` leads to it.
"""

import math
import shutil
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event

import torch

from dragoman.config import Recipe
from dragoman.dist.sync import Sync
from dragoman.dist.world import World
from dragoman.errors import DragomanError
from dragoman.run.checkpoint_files import OPTIMIZER, WEIGHTS, rank_file, temporary
from dragoman.run.folder import RunFolder
from dragoman.train.checkpoint_keep import GIGABYTE, check_budget, keep_checkpoints, make_room
from dragoman.train.checkpoint_restore import PREFIX, Restorer
from dragoman.train.checkpoint_write import (
    MAKE_ROOM,
    Snapshot,
    Snapshots,
    clear_temporaries,
    save_average,
    seal,
    telling,
    write_part,
)
from dragoman.train.optim import Optimizer
from dragoman.train.progress import Progress


@dataclass(frozen=True)
class Saved:
    """What became of a checkpoint: the files on the first host with their sizes, or why there is none."""

    step: int
    files: dict[str, int]
    problem: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Writing:
    """A checkpoint on its way to this rank's disk."""

    progress: Progress
    task: Future[dict[str, int]]
    off: Event  # another rank failed: its file is not waited for


class Checkpoints:
    """Saves and restores one run. All ranks call its methods together, but for `vote` and `is_written`."""

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
        self._token = world.gather(uuid.uuid4().hex[:8])[0]
        self._hosts = world.gather(world.host)  # of ranks, to know whose file is whose
        writers = world.gather(_writer_of_disk(folder, world, self._token))
        self._is_writer = writers[world.rank] == world.rank
        self._followers = [rank for rank, writer in enumerate(writers) if writer == world.rank != rank]
        self._budget = recipe.checkpoint.max_gigabytes * GIGABYTE or math.inf
        with world.together():
            if self._is_writer:
                check_budget(_num_bytes(model.state_dict()) + _num_bytes(optimizer.tensors()), self._budget)
                clear_temporaries(folder)
        self._restorer = Restorer(folder, world, model, optimizer, sync)
        self._snapshots = Snapshots()
        self._snapshot()  # memory is found now, and no step waits for it
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._writing: Writing | None = None

    def begin(self, progress: Progress) -> Saved | None:
        """Set this step's aside for a thread to write; what became of the one before, if that was still on its way."""
        before = self.finish()
        progress, off = replace(progress), Event()
        task = self._thread.submit(self._write, progress, self._snapshot(), off)
        self._writing = Writing(progress, task, off)
        return before

    def _snapshot(self) -> Snapshot:
        own = self._own_tensors()
        files = {rank_file(self._world.rank): own} if own else {}
        with self._sync.shared_weights():
            if self._is_writer:
                files[WEIGHTS] = dict(self._model.state_dict())
                if not self._sync.has_replicas:
                    files[OPTIMIZER] = self._optimizer.tensors()
            return self._snapshots.take(files)

    def _own_tensors(self) -> dict[str, torch.Tensor]:
        own = self._sync.state()
        if self._sync.has_replicas:
            averages = self._optimizer.tensors()
            own |= {PREFIX + name: tensor for name, tensor in averages.items()}
        return own

    def _write(self, progress: Progress, snapshot: Snapshot, off: Event) -> dict[str, int]:
        """In the thread. One rank of every disk also waits for the files of the others there, and seals the folder."""
        final = self._folder.step_checkpoint(progress.step)
        fresh = temporary(final, self._token)
        own_bytes = snapshot.num_bytes_of(rank_file(self._world.rank))
        awaited = [rank_file(rank) for rank in self._followers] if own_bytes else []
        with telling(final, fresh):
            if self._is_writer:
                make_room(self._folder, snapshot.num_bytes + len(awaited) * own_bytes, self._budget)
            write_part(snapshot, fresh)
            if not self._is_writer:
                return {}
            state = {**asdict(progress), "hosts": self._hosts}
            return seal(fresh, final, self._recipe, self._vocab_path, awaited, state, off)

    def vote(self) -> float:
        """To be summed over the ranks: this rank's word that the checkpoint under way is written, or cannot be."""
        if self._writing is None or not self._writing.task.done():
            return 0.0
        return math.inf if self._writing.task.exception() else float(self._writing.progress.step)

    def is_written(self, sums: Sequence[float]) -> bool:
        """By the ranks' votes, also late ones: whether `finish` need not wait."""
        if self._writing is None:
            return False
        everybody = float(self._world.size * self._writing.progress.step)
        return any(votes in (everybody, math.inf) for votes in sums)

    def finish(self) -> Saved | None:
        """Wait until the checkpoint under way is on all disks, and let `last` lead to it there; None if there is none.
        Where it could not be written the one before stays what it was."""
        if self._writing is None:
            return None
        writing, self._writing = self._writing, None
        # Followers first: where one of them failed, its file never comes.
        failure = None if self._is_writer else _failure(writing)
        if any(self._world.gather(failure is not None)):
            writing.off.set()
        failure = failure or _failure(writing)
        if not any(self._world.gather(failure is not None)) and self._is_writer:
            failure = self._make_last(writing.progress)
        step = writing.progress.step
        told = self._world.gather([self._world.host, failure])
        problems = [(host, *problem) for host, problem in told if problem is not None]
        if not problems:
            return Saved(step, writing.task.result())
        if self._is_writer:  # all threads are done: nobody makes this folder anew
            shutil.rmtree(temporary(self._folder.step_checkpoint(step), self._token), ignore_errors=True)
        host, message, hint = problems[0]
        return Saved(step, {}, message if host == told[0][0] else f"host {host}: {message}", hint)

    def end(self) -> Saved | None:
        """`finish` for the last one of a run, which must succeed."""
        saved = self.finish()
        with self._world.together():
            if saved is not None and saved.problem and self._world.is_first:
                raise DragomanError(saved.problem, saved.hint)
        return saved

    def _make_last(self, progress: Progress) -> tuple[str, str] | None:
        config = self._recipe.checkpoint
        try:
            self._folder.set_pointer("last", progress.step)
            keep_checkpoints(self._folder, max(config.keep_last, config.average_last), progress)
        except OSError as error:
            return f"cannot write to {self._folder.checkpoints_path}: {error.strerror}", MAKE_ROOM
        return None

    def _repair(self, progress: Progress) -> list[str]:
        """Hosts that took a peer's copy write their own at once: the peer may be the next to go."""
        lacking = self._restorer.hosts_lacking
        if not lacking:
            return []
        off, snapshot = Event(), self._snapshot()
        is_here = self._world.host not in lacking
        task = self._thread.submit(lambda: {} if is_here else self._write(progress, snapshot, off))
        self._writing = Writing(progress, task, off)
        saved = self.finish()
        return [saved.problem] if saved is not None and saved.problem else []

    def save_average(self) -> None:
        """`checkpoints/average`: the mean of the newest checkpoints' weights, to translate with."""
        with self._world.together():
            if self._world.is_first and self._recipe.checkpoint.average_last:
                save_average(self._folder, self._recipe.checkpoint.average_last, self._recipe, self._vocab_path)

    def restore(self) -> tuple[Progress, list[str]]:
        """Go on from the newest checkpoint that counts, or start afresh; what there is to say about it."""
        progress, notes = self._restorer.restore()
        if progress is None:
            self._sync.load_state({})
            return Progress(), notes
        return progress, [*notes, *self._repair(progress)]

    def roll_back(self, before: int) -> tuple[Progress | None, list[str]]:
        """In a run that goes on: to the newest one of an earlier step, which is `last` from now on; None without one.
        Nothing may be under way."""
        progress, notes = self._restorer.restore(before)
        if progress is not None and self._is_writer:
            with suppress(OSError):  # then a run that is cut off goes on from a later one
                self._folder.set_pointer("last", progress.step)
        return progress, notes


def _failure(writing: Writing) -> tuple[str, str] | None:
    """(message, hint) once this rank's part is done; None if it is well."""
    try:
        writing.task.result()
    except DragomanError as error:
        return error.message, error.hint
    return None


def _writer_of_disk(folder: RunFolder, world: World, token: str) -> int:
    """The one rank that writes this rank's disk: a host's first. Hosts may share a disk (NFS): there it is rank 0."""
    mark = folder.checkpoints_path / ".writer"
    with world.together(), telling(folder.checkpoints_path, mark):
        folder.checkpoints_path.mkdir(parents=True, exist_ok=True)
        if world.is_first:
            mark.write_text(token, encoding="utf-8")
    with world.together():
        shares_first_disk = mark.exists() and mark.read_text(encoding="utf-8") == token
    with world.together():
        if world.is_first:
            mark.unlink()
    firsts = world.gather(world.host_number)
    return 0 if shares_first_disk else firsts.index(world.host_number)


def _num_bytes(tensors: Mapping[str, torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors.values())
