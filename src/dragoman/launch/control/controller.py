"""The controller: owns one run on several hosts, from the first host, detached from every terminal. No torch.

`python -m dragoman.launch.control.controller`, its task on the input. `RUN/control.json` says how it stands.
SIGINT stops the run (workers save first), SIGUSR2 at once; SIGTERM and SIGUSR1 are its machine's: save and leave.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import IO, Any

import psutil

from dragoman.errors import DragomanError
from dragoman.launch.control.admission import forget_agents
from dragoman.launch.control.attempt import run_attempt
from dragoman.launch.control.channel import RETURN_SECONDS
from dragoman.launch.control.detached import read_task
from dragoman.launch.control.gathering import Gathered
from dragoman.launch.control.links import Asked, Event, Links
from dragoman.launch.control.logbook import Logbook
from dragoman.launch.control.outcome import FAILED, Outcome
from dragoman.launch.control.run_ops import start_agent
from dragoman.launch.copying.mirror import start_mirror
from dragoman.launch.hosts.members import Member
from dragoman.launch.restarts import Restarts
from dragoman.launch.when_done import finish
from dragoman.run.control import CONTROLLER_LOCK, INTERRUPTED, PREEMPTED, Control, State, write_control
from dragoman.run.folder import RunFolder, lock_file
from dragoman.run.notices import without_password

CLAIM_SECONDS = 1.0
GRACE_SECONDS = 5.0
ORDERS: dict[int, Asked] = {
    signal.SIGINT: "stop",
    signal.SIGUSR2: "kill",
    signal.SIGTERM: "preempt",
    signal.SIGUSR1: "preempt",
}


@dataclass(frozen=True)
class Task:
    """What a controller is told; crosses to it as JSON."""

    run: str
    attempt: int
    members: tuple[Member, ...]
    token: str
    command: tuple[str, ...]  # of a worker: arguments of Python
    join_seconds: float
    mirror: str | None = None
    when_done: str | None = None
    min_hosts: int | None = None  # with so many the run goes on; all of them, if it is not said
    max_restarts: int = 0
    first_agent: dict[str, Any] | None = None  # what the agent of this host is told, if it has to be started again

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "members": [member.to_dict() for member in self.members], "command": list(self.command)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Task":
        known = dict(values)
        known["members"] = tuple(Member.from_dict(entry) for entry in values["members"])
        known["command"] = tuple(values["command"])
        return cls(**known)


class Controller:
    """One run, its attempts, and the file that tells others about it. Who takes part is decided here alone."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._folder = RunFolder(Path(task.run))
        self._log = Logbook(self._folder)
        self._is_mirrored = True
        self._links = Links(task.members, task.token)
        self._restarts = Restarts(self._folder, task.max_restarts)
        first = task.members[0]
        self._control = Control(
            state="starting",
            attempt=task.attempt,
            pid=os.getpid(),
            pid_started=psutil.Process().create_time(),
            host=first.name,
            address=first.address,
            port=self._links.port,
            members=tuple(member.to_dict() for member in task.members),
        )

    def run(self) -> int:
        """Whatever happens, the file says in the end that it ended."""
        for number in ORDERS:
            signal.signal(number, self._take_signal)
        outcome = Outcome(FAILED, "the controller failed: see controller.out")
        self._note("starting")
        with self._mirrored():
            try:
                outcome = self._run()
            finally:
                self._tell(outcome)
                self._links.close()
                forget_agents(self._folder)
                self._note("ended", exit_code=outcome.exit_code, reason=outcome.reason)
        finish(self._task.when_done, self._folder, outcome.exit_code, self._is_mirrored, self._log.say)
        return outcome.exit_code

    def _take_signal(self, number: int, _frame: FrameType | None) -> None:
        self._links.events.put(Event(ORDERS[number]))

    def _run(self) -> Outcome:
        """Attempts, until one is the last."""
        task = self._task
        names = {member.name for member in task.members}
        order = self._links.await_hosts(names.issubset, task.join_seconds)
        if order is not None:
            return Outcome(PREEMPTED if order == "preempt" else INTERRUPTED, "stopped before it began")
        if not self._is_enough(self._links.present):
            return _never_joined(sorted(names - self._links.present), task)
        number, gathered = task.attempt, Gathered(self._folder)
        while True:
            outcome = self._attempt(number, gathered)
            if not (outcome.is_admission or self._restarts.may_follow(outcome) or self._leaves_out_culprit()):
                return outcome
            number += 1
            self._log.say(f"{outcome.reason}: attempt {number} follows")
            ending = self._await_members(outcome)
            if ending is not None:
                return ending

    def _attempt(self, number: int, gathered: Gathered) -> Outcome:
        """With every host that is there now."""
        members = [member for member in self._task.members if member.name in self._links.present]
        names = ", ".join(f"{member.name} ({member.address}, {member.num_workers})" for member in members)
        self._log.say(f"attempt {number}, hosts (address, workers): {names}")
        self._control = replace(self._control, attempt=number)
        self._note_members()
        me = (self._control.pid, self._control.pid_started)
        return run_attempt(
            number,
            members,
            self._links,
            self._log,
            gathered,
            self._task.command,
            me,
            lambda: self._note("stopping"),
        )

    def _note_members(self) -> None:
        """Those that are there; the same command may bring the others back."""
        present = self._links.present
        told = tuple(member.to_dict() for member in self._task.members if member.name in present)
        self._control = replace(self._control, members=told)
        self._note("running")

    def _leaves_out_culprit(self) -> bool:
        """Whether the run can do without the one host whose ranks failed again and again."""
        culprit = self._restarts.culprit
        if culprit is None or not self._is_enough(self._links.present - {culprit}):
            return False
        self._log.say(f"only ranks of host {culprit} failed, again and again: the run goes on without it")
        self._links.bar(culprit)
        self._restarts.forgive()
        return True

    def _is_enough(self, present: set[str]) -> bool:
        """The first host owns the run: without it there is none."""
        task = self._task
        return task.members[0].name in present and len(present) >= (task.min_hosts or len(task.members))

    def _await_members(self, outcome: Outcome) -> Outcome | None:
        """A host whose agent only fell may be back in a moment; where too few are left, all wait for them. What ends
        the run instead, if something does."""
        order = None
        if self._task.members[0].name in outcome.lost:
            self._start_own_agent()
        if outcome.lost and not outcome.is_silent:
            order = self._links.await_hosts(set(outcome.lost).issubset, GRACE_SECONDS)
        if order is None and not self._is_enough(self._links.present):
            self._note_members()
            self._log.say(f"too few hosts are left: waiting for them, {RETURN_SECONDS / 60:.0f} minutes at most")
            order = self._links.await_hosts(self._is_enough, RETURN_SECONDS)
        if order is not None:
            return Outcome(PREEMPTED if order == "preempt" else INTERRUPTED, "stopped while hosts were missing")
        if not self._is_enough(self._links.present):
            return replace(outcome, reason=f"{outcome.reason}, and nobody came back")
        return None

    def _start_own_agent(self) -> None:
        """The first host's fell, and nobody else can start it."""
        if self._task.first_agent is not None:
            where = {"controller_address": self._control.address, "controller_port": self._control.port}
            with contextlib.suppress(DragomanError):
                start_agent({**self._task.first_agent, **where})

    def _tell(self, outcome: Outcome) -> None:
        if outcome.cause is not None:
            last = "\n".join(f"  {line}" for line in self._log.last_lines(outcome.cause.rank))
            self._log.say(f"the last lines of rank {outcome.cause.rank}:\n{last}" if last else "it said nothing")
        self._log.say(f"the run ended: {outcome.reason} (exit code {outcome.exit_code})")

    def _note(self, state: State, exit_code: int | None = None, reason: str = "") -> None:
        self._control = replace(self._control, state=state, exit_code=exit_code, reason=reason, time=time.time())
        # A full disk must not keep the hosts from being let go.
        with contextlib.suppress(OSError):
            write_control(self._folder, self._control)

    @contextlib.contextmanager
    def _mirrored(self) -> Generator[None]:
        """Copies of the run elsewhere, all the time, and once more when everything is written."""
        if self._task.mirror is None:
            yield
            return
        mirror = start_mirror(self._folder.path, self._task.mirror, self._log.say)
        try:
            yield
        finally:
            self._is_mirrored = mirror.stop()
            if self._is_mirrored:
                self._log.say(f"everything is copied to {without_password(self._task.mirror)}")


def _never_joined(missing: list[str], task: Task) -> Outcome:
    names = ", ".join(missing)
    where = f"{task.members[0].address}"
    return Outcome(
        FAILED,
        f"{names} never joined within {task.join_seconds:.0f} s: look at {task.run}/agent.HOST.out there, and whether "
        f"TCP to {where} is open",
    )


def claim(folder: Path) -> IO[str]:
    """One controller per run; held until this process ends, however it ends."""
    # Who asks whether the run has a controller holds the lock for a moment, too.
    held = lock_file(folder / CONTROLLER_LOCK, CLAIM_SECONDS)
    if held is None:
        raise DragomanError(f"{folder} has a controller already", "dragoman attach shows it")
    return held


def main() -> int:
    """Returns the exit code of the run."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    task = Task.from_dict(read_task())
    try:
        held = claim(Path(task.run))
        controller = Controller(task)
    except (DragomanError, OSError) as error:
        sys.stderr.write(f"{error.message if isinstance(error, DragomanError) else error}\n")
        return DragomanError.exit_code
    with held:
        return controller.run()


if __name__ == "__main__":
    sys.exit(main())
