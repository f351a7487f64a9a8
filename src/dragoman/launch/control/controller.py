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
from dragoman.launch.control.attempt import run_attempt
from dragoman.launch.control.detached import read_task
from dragoman.launch.control.gathering import Gathered
from dragoman.launch.control.links import Event, Links, Order
from dragoman.launch.control.logbook import Logbook
from dragoman.launch.control.outcome import FAILED, Outcome
from dragoman.launch.copying.mirror import start_mirror
from dragoman.launch.hosts.members import Member
from dragoman.launch.when_done import finish
from dragoman.run.control import CONTROLLER_LOCK, INTERRUPTED, PREEMPTED, Control, State, write_control
from dragoman.run.folder import RunFolder, lock_file

CLAIM_SECONDS = 1.0
ORDERS: dict[int, Order] = {
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

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "members": [member.to_dict() for member in self.members], "command": list(self.command)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Task":
        known = dict(values)
        known["members"] = tuple(Member.from_dict(entry) for entry in values["members"])
        known["command"] = tuple(values["command"])
        return cls(**known)


class Controller:
    """One run, one attempt, and the file that tells others about it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._folder = RunFolder(Path(task.run))
        self._log = Logbook(self._folder)
        self._is_mirrored = True
        self._links = Links(task.members, task.token)
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
                self._note("ended", exit_code=outcome.exit_code, reason=outcome.reason)
        finish(self._task.when_done, self._folder, outcome.exit_code, self._is_mirrored, self._log.say)
        return outcome.exit_code

    def _take_signal(self, number: int, _frame: FrameType | None) -> None:
        self._links.events.put(Event(ORDERS[number]))

    def _run(self) -> Outcome:
        task = self._task
        names = ", ".join(f"{member.name} ({member.address}, {member.num_workers})" for member in task.members)
        self._log.say(f"attempt {task.attempt}, hosts (address, workers): {names}")
        missing, order = self._links.await_all(task.join_seconds)
        if order is not None:
            return Outcome(PREEMPTED if order == "preempt" else INTERRUPTED, "stopped before it began")
        if missing:
            return _never_joined(missing, task)
        self._note("running")
        gathered = Gathered(self._folder)
        me = (self._control.pid, self._control.pid_started)
        return run_attempt(
            task.members, self._links, self._log, gathered, task.command, me, lambda: self._note("stopping")
        )

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
                self._log.say(f"everything is copied to {self._task.mirror}")


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
