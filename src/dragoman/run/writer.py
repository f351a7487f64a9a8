"""Appends records to a run folder from a background thread: never blocks training, never raises into it.

A kill loses about the last second. Knows the folder and the records; knows nothing of what they mean.
"""

import atexit
import os
import queue
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.run.folder import RunFolder, replaced_file
from dragoman.run.records import (
    EvalRecord,
    EvalSentence,
    Event,
    EventKind,
    Manifest,
    Record,
    StepRecord,
    TimingRecord,
    manifest_to_json,
    to_line,
)
from dragoman.run.samples import SystemSample

FLUSH_SECONDS = 1.0
# A disk that hangs must not eat the memory of the training process.
MAX_WAITING = 200_000


class RunWriter:
    """One per rank. `write` costs a queue put; `close` (or leaving the `with` block) drains."""

    def __init__(self, folder: RunFolder, attempt: int, flush_seconds: float = FLUSH_SECONDS) -> None:
        self.folder = folder
        self.attempt = attempt
        self.num_lost = 0
        self._flush_seconds = flush_seconds
        self._waiting: queue.SimpleQueue[Record | Callable[[], None]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._warned = False
        self._thread = threading.Thread(target=self._work, name="run-writer", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def write(self, record: Record) -> None:
        """Queue one record for its file."""
        self._put(record)

    def write_event(self, kind: EventKind, step: int, /, **detail: Any) -> None:
        """Queue an event of this attempt that happens now."""
        self._put(Event(self.attempt, time.time(), kind, step, detail))

    def write_sentences(self, step: int, dev_set: str, sentences: Sequence[EvalSentence]) -> None:
        """Queue the per-sentence file of one evaluation; it replaces an earlier attempt's whole."""
        self._put(lambda: write_eval_sentences(self.folder, step, dev_set, sentences))

    def close(self) -> None:
        """Write what is queued and stop; calling it again does nothing."""
        self._closing.set()
        self._thread.join()
        atexit.unregister(self.close)

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, item: Record | Callable[[], None]) -> None:
        if self._closing.is_set() or self._waiting.qsize() >= MAX_WAITING:
            self._lose(1, "the writer is closed or the disk does not keep up")
            return
        self._waiting.put(item)

    def _work(self) -> None:
        while not self._closing.wait(self._flush_seconds):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        lines: defaultdict[Path, list[str]] = defaultdict(list)
        for _ in range(self._waiting.qsize()):
            self._take(self._waiting.get(), lines)
        for path, chunk in lines.items():
            try:
                append_lines(path, chunk)
            except OSError as error:
                self._lose(len(chunk), f"{path}: {error.strerror or error}")

    def _take(self, item: Record | Callable[[], None], lines: defaultdict[Path, list[str]]) -> None:
        try:
            if isinstance(item, StepRecord | TimingRecord | EvalRecord | SystemSample | Event):
                lines[_path_of(self.folder, item)].append(to_line(item))
            else:
                item()
        except Exception as error:  # whatever it is, training goes on
            self._lose(1, str(error))

    def _lose(self, num_records: int, reason: str) -> None:
        self.num_lost += num_records
        if not self._warned:
            self._warned = True
            sys.stderr.write(f"warning: the run's records are not written ({reason}); training goes on\n")


def append_lines(path: Path, lines: Iterable[str]) -> None:
    """Append whole lines or none: what does not fit on the disk is cut off again."""
    data = "".join(lines).encode("utf-8", errors="replace")
    with path.open("ab+", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size and not _ends_with_newline(file.fileno(), size):
            # A kill tore the last line: without this, the next record would be lost with it.
            data = b"\n" + data
        try:
            written = 0
            while written < len(data):
                written += file.write(data[written:]) or 0
        except OSError:
            file.truncate(size)
            raise


def write_manifest(folder: RunFolder, manifest: Manifest) -> None:
    """Replace `manifest.json` whole. This may raise: it is written before an attempt's first step."""
    try:
        with replaced_file(folder.manifest_path) as fresh:
            fresh.write_text(manifest_to_json(manifest), encoding="utf-8")
    except OSError as error:
        problem = f"cannot write {folder.manifest_path}: {error.strerror}"
        raise DragomanError(problem, "make room on that disk, or name another run folder") from None


def write_eval_sentences(folder: RunFolder, step: int, dev_set: str, sentences: Iterable[EvalSentence]) -> None:
    """Replace `evals/step-NNNNNNNN/DEVSET.jsonl` whole."""
    path = folder.eval_path(step, dev_set)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(path) as fresh:
        lines = "".join(to_line(sentence) for sentence in sentences)
        fresh.write_text(lines, encoding="utf-8", errors="replace")


def _ends_with_newline(descriptor: int, size: int) -> bool:
    return os.pread(descriptor, 1, size - 1) == b"\n"


def _path_of(folder: RunFolder, record: Record) -> Path:
    match record:
        case StepRecord():
            return folder.steps_path
        case TimingRecord():
            return folder.timing_path(record.rank)
        case EvalRecord():
            return folder.evals_path
        case SystemSample():
            return folder.system_path(record.host)
        case Event():
            return folder.events_path
