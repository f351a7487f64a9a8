"""A run of two hosts that goes on: written line by line as training writes it, at times of the test's choice."""

import time
from pathlib import Path
from typing import Any

from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.run.promise import LinkProfile, Profile, write_promise
from dragoman.run.records import (
    Attempt,
    DataSummary,
    EvalRecord,
    Event,
    Host,
    Manifest,
    SideSize,
    StepRecord,
    TimingRecord,
    to_line,
)
from dragoman.run.samples import CardSample, SystemSample
from dragoman.run.writer import append_lines, write_manifest

MAX_STEPS = 1000
LINK_BYTES_PER_SECOND = 12_000_000.0


class GrowingRun:
    """Time goes on by itself: `step_seconds` for a step, a second for a sample."""

    def __init__(self, path: Path, start: float | None = None, name: str = "growing") -> None:
        self.folder: RunFolder = create_run_folder(path)
        self.now = time.time() - 5 if start is None else start
        self.step = 0
        self.attempt = 1
        self._created, self._name = self.now, name
        self._write_manifest()
        link = LinkProfile(LINK_BYTES_PER_SECOND, 0.001)
        write_promise(self.folder.profile_path, Profile(self.now, link=link))
        self.event("started", step=0)

    def _write_manifest(self) -> None:
        side = SideSize("en", 100, 4, 90, 3, 80, 20)
        data = DataSummary("data/toy", "f00d", "en-de", 3, side, side, {"toy": 3}, {"dev": 2})
        hosts = tuple(Host(host, "cpu", 2, 2**30, (), 1, "eth0") for host in "ab")
        attempts = tuple(Attempt(number, self.now, "dragoman train tiny", 2) for number in range(1, self.attempt + 1))
        recipe = {"name": "tiny", "train": {"max_steps": MAX_STEPS}}
        manifest = Manifest(
            self._name, self._created, recipe, "h", {}, 2, "cpu", "fp32", 9, data, hosts, attempts
        )  # fmt: skip
        write_manifest(self.folder, manifest)

    def steps(self, count: int, loss: float | None = None, step_seconds: float = 0.5) -> None:
        for _ in range(count):
            self.step += 1
            self.now += step_seconds
            value = 2 + 6 / (1 + self.step / 50) if loss is None else loss
            record = StepRecord(
                self.attempt, self.now, self.step, value, value, 1e-3, 0.5, 900, 1000, 40, step_seconds
            )  # fmt: skip
            append_lines(self.folder.steps_path, [to_line(record)])
            for rank, host in enumerate("ab"):
                parts = [share * step_seconds for share in (0.0, 0.2, 0.3, 0.45, 0.05, 0.0, 0.0, 0.0)]
                timing = TimingRecord(self.attempt, self.now, self.step, rank, host, *parts, step_seconds, 1_000_000)
                append_lines(self.folder.timing_path(rank), [to_line(timing)])

    def samples(self, count: int, sent_bytes: int = 9_000_000) -> None:
        for _ in range(count):
            self.now += 1.0
            for host in "ab":
                cards = (CardSample("eth0", sent_bytes, sent_bytes, 9, 9, 0), CardSample("lo", 7, 7, 1, 1, 0))
                sample = SystemSample(self.attempt, self.now, host, 1.0, 0.5, 2**29, 2**30, 0, 0, 2**33, cards)
                append_lines(self.folder.system_path(host), [to_line(sample)])

    def evaluate(self, loss: float, bleu: float | None = None) -> None:
        record = EvalRecord(
            self.attempt, self.now, self.step, "dev", loss, None, bleu, None, None, None, 2, 2, 20, 0.1, 0.2
        )  # fmt: skip
        append_lines(self.folder.evals_path, [to_line(record)])

    def event(self, kind: str, step: int | None = None, **detail: Any) -> None:
        at = self.step if step is None else step
        append_lines(self.folder.events_path, [to_line(Event(self.attempt, self.now, kind, at, detail))])

    def resume(self, step: int) -> None:
        self.attempt += 1
        self.step = step
        self._write_manifest()
        self.event("resumed")
