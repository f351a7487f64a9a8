"""A run as it stands, from reading only what was appended since: newest records, recent pace, curves in few buckets.

Knows the run folder; knows no page, no terminal and no verdict.
"""

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dragoman.errors import DragomanError
from dragoman.run.control import hosts_log_path
from dragoman.run.folder import RunFolder
from dragoman.run.promise import Prediction, Profile, find_promise
from dragoman.run.reader import read_manifest
from dragoman.run.records import EvalRecord, Event, Manifest, StepRecord, TimingRecord, from_line
from dragoman.run.samples import SystemSample
from dragoman.run.tail import Tail
from dragoman.web.watch.curve import Curve
from dragoman.web.watch.host_now import HostNow

NUM_RECENT = 50
RECENT_BYTES = 60_000  # of a file whose past is not needed: some hundred lines
T = TypeVar("T")


class LiveRun:
    """Reads on at every `refresh`. One that was replaced by another run is begun anew."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.was_there = False
        self.num_news = 0  # changes whenever anything below does
        self._forget()

    def _forget(self) -> None:
        folder = self.folder
        self.manifest: Manifest | None = None
        self.problem = ""  # of the manifest, in words
        self.profile: Profile | None = None
        self.prediction: Prediction | None = None
        self.attempt = 0
        self.heard = 0.0  # unix seconds of the newest record of any kind
        self.loss = Curve()
        self.step_seconds = Curve()
        self.recent: deque[StepRecord] = deque(maxlen=NUM_RECENT)
        self.timings: deque[TimingRecord] = deque(maxlen=NUM_RECENT)  # of rank 0
        self.evals: list[EvalRecord] = []  # first dev set
        self.events: list[Event] = []
        self.hosts: dict[str, HostNow] = {}
        self.trained_seconds = 0.0  # of this attempt, steps alone
        self.first_time: float | None = None  # when this attempt's first step began
        self.last_log = ""
        self._stamps: dict[str, tuple[int, int] | None] = {}
        self._steps, self._evals = Tail(folder.steps_path), Tail(folder.evals_path)
        self._events = Tail(folder.events_path)
        self._timing = Tail(folder.timing_path(0), RECENT_BYTES)
        self._logs = [Tail(path, RECENT_BYTES) for path in (hosts_log_path(folder), folder.log_path)]
        self._samples: dict[str, Tail] = {}

    @property
    def last(self) -> StepRecord | None:
        return self.recent[-1] if self.recent else None

    @property
    def recent_step_seconds(self) -> float | None:
        """A median: one step that waited must not be taken for the pace."""
        return statistics.median(step.step_seconds for step in self.recent) if self.recent else None

    @property
    def ending(self) -> Event | None:
        """Of the newest attempt."""
        ends = [event for event in self.events if event.kind in ("finished", "stopped")]
        return ends[-1] if ends and ends[-1].attempt >= self.attempt else None

    def setting(self, section: str, key: str) -> Any:
        """Of the recipe, as recorded; None where there is none."""
        values = self.manifest.recipe.get(section) if self.manifest else None
        return values.get(key) if isinstance(values, dict) else None

    def refresh(self) -> bool:
        """Read what is new; whether anything was."""
        before = self.num_news
        self._read_whole_files()
        self._take(self._events, Event, self._add_event)
        self._take(self._steps, StepRecord, self._add_step)
        self._take(self._evals, EvalRecord, self._add_eval)
        self._take(self._timing, TimingRecord, self.timings.append)
        for path in self.folder.system_paths():
            tail = self._samples.setdefault(path.name, Tail(path))
            self._take(tail, SystemSample, self._add_sample)
        for tail in self._logs:
            lines = tail.news()
            self.last_log = lines[-1].decode(errors="replace").strip() if lines else self.last_log
        return before != self.num_news

    def _take(self, tail: Tail, kind: type[T], add: Callable[[T], None]) -> None:
        for line in tail.news():
            record = from_line(kind, line)
            if record is not None:
                add(record)
                self.num_news += 1

    def _read_whole_files(self) -> None:
        folder = self.folder
        if self._has_changed("manifest", folder.manifest_path.name):
            self._read_manifest()
        if self._has_changed("profile", folder.profile_path.name):
            self.profile = find_promise(folder.profile_path, Profile)
        if self._has_changed("prediction", folder.prediction_path.name):
            self.prediction = find_promise(folder.prediction_path, Prediction)

    def _has_changed(self, key: str, name: str) -> bool:
        try:
            status = (self.folder.path / name).stat()
            stamp = (status.st_mtime_ns, status.st_size)
        except OSError:
            stamp = None
        if key in self._stamps and self._stamps[key] == stamp:
            return False
        self._stamps[key] = stamp
        self.num_news += stamp is not None
        return True

    def _read_manifest(self) -> None:
        stamps = self._stamps
        if stamps["manifest"] is None:
            if self.manifest is not None:
                self._forget()
            return
        try:
            manifest = read_manifest(self.folder)
        except DragomanError as error:
            self.problem = error.message
            return
        if self.manifest is not None and manifest.created != self.manifest.created:
            self._forget()
            self._stamps["manifest"] = stamps["manifest"]
        self.manifest, self.problem, self.was_there = manifest, "", True
        self.attempt = max([self.attempt, *(item.attempt for item in manifest.attempts)])

    def _add_event(self, event: Event) -> None:
        self.events.append(event)
        self._hear(event.attempt, event.time)

    def _add_step(self, record: StepRecord) -> None:
        last = self.last
        if last is not None and (record.attempt > last.attempt or record.step <= last.step):  # resumed, or rolled back
            kept = [step for step in self.recent if step.step < record.step]
            self.recent = deque(kept, maxlen=NUM_RECENT)
            self.evals = [item for item in self.evals if item.step < record.step]
            self.loss.cut(record.step)
            self.step_seconds.cut(record.step)
        if self.first_time is None or last is None or record.attempt > last.attempt:
            self.first_time, self.trained_seconds = record.time - record.step_seconds, 0.0
        self.trained_seconds += record.step_seconds
        self.recent.append(record)
        self.loss.add(record.step, record.loss)
        self.step_seconds.add(record.step, record.step_seconds)
        self._hear(record.attempt, record.time)

    def _add_eval(self, record: EvalRecord) -> None:
        if not self.evals or record.dev_set == self.evals[0].dev_set:
            self.evals = [item for item in self.evals if item.step < record.step]
            self.evals.append(record)
        self._hear(record.attempt, record.time)

    def _add_sample(self, sample: SystemSample) -> None:
        host = self.hosts.get(sample.host)
        if host is None:
            host = self.hosts[sample.host] = HostNow(sample.host, self._interfaces(sample.host))
        host.add(sample)
        self._hear(sample.attempt, sample.time)

    def _interfaces(self, name: str) -> Sequence[str]:
        """The card that carries the exchange, where the run has one."""
        hosts = self.manifest.hosts if self.manifest else ()
        return [host.interface for host in hosts if host.name == name and host.interface]

    def _hear(self, attempt: int, time: float) -> None:
        self.attempt = max(self.attempt, attempt)
        self.heard = max(self.heard, time)
