"""Reads a run folder into one typed record: what was written, less what a later attempt did again.

Never writes, never guesses: a missing file is an empty list, a torn line is skipped and counted.
"""

import gc
import json
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from dragoman.errors import DragomanError
from dragoman.run.folder import POINTERS, RunFolder, open_run_folder
from dragoman.run.promise import Prediction, Profile, find_promise
from dragoman.run.records import (
    SCHEMA,
    EvalRecord,
    EvalSentence,
    Event,
    Manifest,
    StepRecord,
    TimingRecord,
    from_line,
    manifest_from_dict,
)
from dragoman.run.samples import SystemSample


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A file of a checkpoint, as it lies on disk."""

    name: str
    num_bytes: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint folder on disk, and the pointers that lead to it."""

    name: str  # step-00044000 or average
    step: int | None
    path: Path
    files: tuple[CheckpointFile, ...]
    pointers: tuple[str, ...]

    @property
    def num_bytes(self) -> int:
        return sum(file.num_bytes for file in self.files)


@dataclass(frozen=True)
class RunRecord:
    """Everything that is known of a run. Records are in the order of steps; events in the order of time."""

    folder: RunFolder
    manifest: Manifest
    steps: tuple[StepRecord, ...]
    timings: tuple[TimingRecord, ...]  # all ranks
    evals: tuple[EvalRecord, ...]
    events: tuple[Event, ...]
    checkpoints: tuple[Checkpoint, ...]
    lost_steps: tuple[StepRecord, ...]  # done again, by a later attempt or after a rollback
    num_bad_lines: Mapping[str, int]  # file name -> torn or garbage lines; only files that have some
    samples: tuple[SystemSample, ...] = ()  # all hosts, each in the order of time
    profile: Profile | None = None
    prediction: Prediction | None = None

    @property
    def dev_sets(self) -> list[str]:
        """Names in the order of the evaluations: the first is the one that is decoded."""
        return list(dict.fromkeys(record.dev_set for record in self.evals))

    def evals_of(self, dev_set: str) -> list[EvalRecord]:
        return [record for record in self.evals if record.dev_set == dev_set]

    def events_of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def read_eval_sentences(self, step: int, dev_set: str) -> list[EvalSentence]:
        """The sentences of one evaluation, read now; empty where they were not kept."""
        return _read_lines(self.folder.eval_path(step, dev_set), EvalSentence)[0]


def read_run(path: str | Path) -> RunRecord:
    """Read a run folder. Only a folder that is none, or of another schema, is an error."""
    folder = open_run_folder(path)
    with _without_collector():
        return _read(folder)


@contextmanager
def _without_collector() -> Generator[None]:
    """A long run is a million objects and no cycle: looking for cycles among them would take a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(folder: RunFolder) -> RunRecord:
    manifest = read_manifest(folder)
    bad: Counter[str] = Counter()
    steps, redone = _without_redone(_read_counted(folder.steps_path, StepRecord, bad))
    evals = _read_counted(folder.evals_path, EvalRecord, bad)
    events = _read_counted(folder.events_path, Event, bad)
    timing_files = [_read_counted(path, TimingRecord, bad) for path in folder.timing_paths()]
    timings = [record for records in timing_files for record in _without_redone(records)[0]]
    samples = [record for path in folder.system_paths() for record in _read_counted(path, SystemSample, bad)]
    first_steps = _first_steps(steps, events)
    kept_steps, lost_steps = _keep_latest(steps, first_steps, lambda record: record.step)
    kept_evals, _ = _keep_latest(evals, first_steps, lambda record: (record.step, record.dev_set))
    kept_timings, _ = _keep_latest(timings, first_steps, lambda record: (record.step, record.rank))
    return RunRecord(
        folder=folder,
        manifest=manifest,
        steps=tuple(kept_steps),
        timings=tuple(kept_timings),
        evals=tuple(kept_evals),
        events=tuple(sorted(events, key=lambda event: event.time)),
        checkpoints=tuple(list_checkpoints(folder)),
        lost_steps=tuple(sorted([*redone, *lost_steps], key=lambda record: (record.step, record.attempt))),
        num_bad_lines=dict(bad),
        samples=tuple(samples),
        profile=find_promise(folder.profile_path, Profile),
        prediction=find_promise(folder.prediction_path, Prediction),
    )


def read_manifest(folder: RunFolder) -> Manifest:
    """The manifest; another schema or a damaged file is one clear line."""
    path = folder.manifest_path
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DragomanError(f"cannot read {path}: {error}", "fetch the run again, or mend the file") from None
    schema = cast("dict[str, Any]", values).get("schema") if isinstance(values, dict) else None
    if schema != SCHEMA:
        raise DragomanError(
            f"{path} has schema {schema!r}; this version of Dragoman reads schema {SCHEMA}",
            "read it with the version that wrote it: `versions.dragoman` in that file",
        )
    try:
        return manifest_from_dict(cast("dict[str, Any]", values))
    except ValueError as error:
        raise DragomanError(f"{path} is damaged: {error}", "fetch the run again, or mend the file") from None


def list_checkpoints(folder: RunFolder) -> list[Checkpoint]:
    """What lies under `checkpoints/` now, oldest first, `average` last."""
    pointed = {name: folder.pointed_step(name) for name in POINTERS}
    found = [
        _checkpoint(folder.step_checkpoint(step), step, [name for name in POINTERS if pointed[name] == step])
        for step in folder.step_checkpoints()
    ]
    if folder.average_checkpoint.is_dir():
        found.append(_checkpoint(folder.average_checkpoint, None, []))
    return found


def _checkpoint(path: Path, step: int | None, pointers: Sequence[str]) -> Checkpoint:
    files = sorted(entry for entry in path.rglob("*") if entry.is_file())
    sizes = tuple(CheckpointFile(str(entry.relative_to(path)), entry.stat().st_size) for entry in files)
    return Checkpoint(path.name, step, path, sizes, tuple(pointers))


class _Stepped(Protocol):
    @property
    def attempt(self) -> int: ...
    @property
    def step(self) -> int: ...


R = TypeVar("R", bound=_Stepped)
L = TypeVar("L")


def _read_counted(path: Path, record_type: type[L], bad: Counter[str]) -> list[L]:
    records, num_bad = _read_lines(path, record_type)
    if num_bad:
        bad[path.name] = num_bad
    return records


def _read_lines(path: Path, record_type: type[L]) -> tuple[list[L], int]:
    """Records and the number of lines that are none. A file that is missing has neither."""
    try:
        data = path.read_bytes()
    except OSError:
        return [], 0
    lines = [line for line in data.split(b"\n") if line.strip()]
    records = [from_line(record_type, line) for line in lines]
    whole = [record for record in records if record is not None]
    return whole, len(records) - len(whole)


def _first_steps(steps: Iterable[StepRecord], events: Iterable[Event]) -> dict[int, int]:
    """Attempt -> the first step it did, or would have done had it not died before."""
    first: dict[int, int] = {}
    for record in steps:
        first[record.attempt] = min(record.step, first.get(record.attempt, record.step))
    for event in events:
        if event.kind in ("started", "resumed"):
            first[event.attempt] = min(event.step + 1, first.get(event.attempt, event.step + 1))
    return first


def _without_redone(records: Sequence[R]) -> tuple[list[R], list[R]]:
    """(kept, lost) of one file: steps of an attempt rise, but where the run was rolled back and did some again."""
    kept: list[R] = []
    lost: list[R] = []
    for record in records:
        while kept and kept[-1].step >= record.step and kept[-1].attempt == record.attempt:
            lost.append(kept.pop())
        kept.append(record)
    return kept, lost


def _keep_latest(
    records: Sequence[R], first_steps: Mapping[int, int], key: Callable[[R], Hashable]
) -> tuple[list[R], list[R]]:
    """(kept, lost), by step: what an attempt did beyond the start of a later one is lost work."""
    cut: dict[int, int] = {}
    for attempt in {record.attempt for record in records}:
        cut[attempt] = min((step for later, step in first_steps.items() if later > attempt), default=2**63)
    kept: dict[Hashable, R] = {}
    lost: list[R] = []
    for record in sorted(records, key=lambda record: (record.step, record.attempt)):
        if record.step >= cut[record.attempt]:
            lost.append(record)
        else:
            kept[key(record)] = record
    return list(kept.values()), lost
