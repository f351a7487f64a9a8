"""A run that lives through faults: the command that was typed, typed again whenever it ends too early, and what is
to be undone when a fault is over."""

import contextlib
import itertools
import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fault_hosts import FaultHosts
from fault_records import Records
from fault_settings import settings_of

POLL_SECONDS = 0.1
AGAIN_SECONDS = 1.0  # a person needs longer
MOST_FUTILE = 4  # commands in a row that bring no step
STOP_SECONDS = 60.0
LONG_LINE = 300


@dataclass(frozen=True)
class Settings:
    """What is trained where."""

    method: str
    num_hosts: int
    num_workers: int  # of each host
    every_steps: int  # between two checkpoints
    max_steps: int


@dataclass
class Typed:
    """One command as its user sees it."""

    host: str
    process: subprocess.Popen[str]
    began: float = field(default_factory=time.time)
    lines: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    ended: float | None = None
    num_steps_before: int = 0  # that were recorded when it was typed

    def read(self) -> None:
        """In a thread of its own."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.time(), line.rstrip("\n")))
        self.process.stdout.close()

    @property
    def last_words(self) -> str:
        words = [line for _, line in self.lines if line.strip()]
        told = [line for line in words if "the run ended" in line or line.startswith("error")]
        return (told or words or ["it said nothing"])[-1][:LONG_LINE]

    @property
    def longest_silence(self) -> float:
        moments = [self.began, *(moment for moment, _ in list(self.lines)), self.ended or time.time()]
        return max(after - before for before, after in itertools.pairwise(moments))


@dataclass
class Disturbance:
    """Something that lasts: kept up at every look, undone when it is over."""

    until: float
    undo: Callable[[], None]
    keep_up: Callable[[], None] = lambda: None


class GaveUpError(Exception):
    """The run does not go on, however often its command is typed."""


class TooLateError(Exception):
    """The run reached its last step before the fault could be made."""


class LiveRun:
    """All in one thread, but for the readers of output: `tend` is called all the time."""

    def __init__(self, hosts: FaultHosts, settings: Settings, data: Path, has_min_hosts: bool) -> None:
        self.hosts = hosts
        self.settings = settings
        self.has_min_hosts = has_min_hosts
        self.living = list(hosts.names)  # those that can still be reached
        self.cut_off: list[str] = []  # those that run on behind a cut cable
        self.records = Records()
        self.typed: list[Typed] = []
        self._data = data
        self._disturbances: list[Disturbance] = []

    @property
    def first(self) -> str:
        """Where the command is typed."""
        return self.living[0]

    @property
    def is_finished(self) -> bool:
        ends = (event for event in self.records.events if event.fields["kind"] == "finished")
        has_said = any(event.step == self.settings.max_steps for event in ends)
        return has_said and self.typed[-1].process.returncode == 0

    @property
    def is_disturbed(self) -> bool:
        return bool(self._disturbances)

    def type_command(self) -> None:
        settings = self.settings
        # A host that is gone stays in the list where the product passes it over.
        names = self.hosts.names if self.has_min_hosts else self.living
        words = ["train", "phrasebook", "--data", str(self._data), "--run", str(self.hosts.run_path)]
        words += ["--hosts", str(self.hosts.hosts_file(names, settings.num_workers))]
        words += ["--min-hosts", "1"] if self.has_min_hosts else []
        chosen = settings_of(settings.method, settings.max_steps, settings.every_steps)
        typed = Typed(self.first, self.hosts.type_on(self.first, [*words, *chosen]))
        typed.num_steps_before = len(self.records.steps)
        self.typed.append(typed)
        threading.Thread(target=typed.read, daemon=True).start()

    def disturb(self, seconds: float, undo: Callable[[], None], keep_up: Callable[[], None] = lambda: None) -> None:
        self._disturbances.append(Disturbance(time.time() + seconds, undo, keep_up))
        keep_up()

    def end_disturbances(self) -> None:
        for disturbance in self._disturbances:
            disturbance.undo()
        self._disturbances.clear()

    def tend(self) -> None:
        """One look: undo what is over, read what is new, type the command again if it has ended too early."""
        self._tend_disturbances()
        self.records.read(self.first, self.hosts.run_folder(self.first))
        typed = self.typed[-1]
        if typed.process.poll() is not None and not self.is_finished:
            typed.ended = typed.ended or time.time()
            is_time = time.time() - typed.ended > AGAIN_SECONDS
            if is_time and not self.is_disturbed:  # whoever types it mends the cause first
                self._refuse_futile()
                self.type_command()
        time.sleep(POLL_SECONDS)

    def _refuse_futile(self) -> None:
        futile = [one for one in self.typed if one.num_steps_before == len(self.records.steps)]
        if len(futile) >= MOST_FUTILE:
            raise GaveUpError(f"typed {MOST_FUTILE} times in vain: {futile[-1].last_words}")

    def _tend_disturbances(self) -> None:
        now = time.time()
        for disturbance in list(self._disturbances):
            if now >= disturbance.until:
                self._disturbances.remove(disturbance)
                disturbance.undo()
            else:
                disturbance.keep_up()

    def wait(self, is_true: Callable[[], bool], seconds: float, what: str) -> None:
        """Tend the run until something holds or the run is finished."""
        deadline = time.time() + seconds
        while not is_true() and not self.is_finished:
            if time.time() > deadline:
                raise GaveUpError(f"not within {seconds:.0f} s: {what}")
            self.tend()

    def stop(self) -> None:
        """As a person does, and wait until the command has come back."""
        stopping = Typed(self.first, self.hosts.type_on(self.first, ["stop", str(self.hosts.run_path)]))
        stopping.read()
        stopping.process.wait(STOP_SECONDS)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.typed[-1].process.wait(STOP_SECONDS)
        self.typed[-1].ended = time.time()

    def last_checkpoint(self, host: str | None = None) -> int | None:
        """The step that `last` leads to on that host."""
        return self.hosts.run_folder(host or self.first).pointed_step("last")

    def said_since(self, moment: float) -> list[str]:
        return [line for typed in self.typed for said, line in list(typed.lines) if said > moment]


def write_output(typed: Sequence[Typed], path: Path) -> None:
    """What the user saw, for whoever looks into a problem."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for one in typed:
            file.write(f"# typed on {one.host} at {one.began:.2f}\n")
            file.writelines(f"{moment:.2f} {line}\n" for moment, line in one.lines)
            file.write(json.dumps({"exit_code": one.process.returncode, "ended": one.ended}) + "\n")
