"""`control.json`: who owns a run on several hosts and how it stands. Written by its controller, read by everybody."""

import dataclasses
import json
import signal
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import psutil
from pydantic import Field, TypeAdapter, ValidationError

from dragoman.errors import DragomanError
from dragoman.run.folder import RunFolder, is_held, replaced_file

State = Literal["starting", "running", "stopping", "ended"]
# Exit codes of a worker: a person asked it to leave and it did; its machine asked; it is well, but a rank is gone.
# 143 is what schedulers that look at codes start again without being told to; 1 and 2 are final to them.
INTERRUPTED, PREEMPTED, LOST_PEER = 130, 143, 75
HUNG = 70  # no step ended for too long
DIVERGED = 71  # step after step gave no number, and going back to a checkpoint did not help
OUT_OF_MEMORY, NOT_JOINED = 72, 76  # a user's errors that may be gone next time: 2 for whoever gave the command
WARNINGS = (signal.SIGTERM, signal.SIGUSR1)  # of schedulers and clouds, to whichever process of a run: save and leave
CONTROL = "control.json"
HOSTS_LOG = "hosts.log"
MAX_PID = 2**31 - 1
CONTROLLER_LOCK = ".controller.lock"  # held by a controller as long as it lives
CONTROLLER = "dragoman.launch.control.controller"


@dataclass(frozen=True)
class Control:
    """The controller's word on its run. Being one does not mean that the controller still lives."""

    state: State
    attempt: int
    pid: Annotated[int, Field(ge=1, le=MAX_PID)]
    pid_started: float  # when that process began: a number may be given out again
    host: str
    address: str
    port: int
    members: tuple[dict[str, Any], ...] = ()
    exit_code: int | None = None
    reason: str = ""
    time: float = field(default_factory=time.time)  # unix seconds of this state


def control_path(folder: RunFolder) -> Path:
    return folder.path / CONTROL


def hosts_log_path(folder: RunFolder) -> Path:
    return folder.path / HOSTS_LOG


def write_control(folder: RunFolder, control: Control) -> None:
    """Replace the file whole: a reader never meets half of it."""
    with replaced_file(control_path(folder)) as fresh:
        fresh.write_text(json.dumps(dataclasses.asdict(control), indent=2) + "\n", encoding="utf-8")


def read_control(folder: RunFolder) -> Control | None:
    """None where there is none, or none that can be read; keys of later versions are passed over."""
    try:
        control = _adapter().validate_json(control_path(folder).read_bytes())
    except (OSError, ValidationError):
        return None
    return control if all(isinstance(member.get("name"), str) for member in control.members) else None


@cache
def _adapter() -> TypeAdapter[Control]:
    return TypeAdapter(Control)


def is_alive(control: Control, folder: RunFolder) -> bool:
    """Whether that very controller is still there, as seen from this machine; after the end it may copy to a mirror.

    The lock in the run folder knows exactly. Without it the process's start is compared, which moves with the clock.
    """
    is_locked = is_held(folder.path / CONTROLLER_LOCK)
    try:
        process = psutil.Process(control.pid)
        if is_locked is None:
            is_same = abs(process.create_time() - control.pid_started) < 2.0
        else:
            # On a shared disk the lock may be held on another machine, where that number is another process.
            is_same = is_locked and CONTROLLER in process.cmdline()
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def refuse_running(folder: RunFolder) -> None:
    """A run that has a living controller is not started a second time."""
    control = read_control(folder)
    if control is not None and is_alive(control, folder):
        if control.state == "ended":
            raise DragomanError(
                f"{folder.path} has ended, but is still being copied to its mirror, or its --when-done still runs",
                "wait for it: dragoman attach RUN",
            )
        problem = f"{folder.path} is running on {', '.join(member['name'] for member in control.members)}"
        raise DragomanError(problem, "dragoman attach RUN shows it, dragoman stop RUN ends it")
