"""Whether a run lives, asked of the machine that it runs on: locks, controller, clock. No record is read here."""

import time
from dataclasses import dataclass

from dragoman.run.consent import open_question
from dragoman.run.control import is_alive, read_control
from dragoman.run.folder import RunFolder, is_held


@dataclass(frozen=True, slots=True)
class Vitals:
    """What can be known without reading records. `problem`: why nothing could be asked; the rest is then empty."""

    is_there: bool  # the folder
    now: float  # unix seconds, by the clock of that machine
    is_held: bool | None = None  # a worker has the run; None where that cannot be known
    is_controlled: bool | None = None  # a controller lives; None for a run that has none
    control_state: str = ""
    control_attempt: int = 0
    exit_code: int | None = None
    reason: str = ""
    question: str | None = None  # what the run asks before its first step
    problem: str = ""


def read_vitals(folder: RunFolder) -> Vitals:
    """Here and now. Never raises: a folder may vanish between two questions."""
    now = time.time()
    try:
        is_there = folder.path.is_dir()
    except OSError as error:
        return Vitals(False, now, problem=f"cannot read {folder.path}: {error.strerror}")
    if not is_there:
        return Vitals(False, now)
    control = read_control(folder)
    return Vitals(
        is_there=True,
        now=now,
        is_held=is_held(folder.lock_path),
        is_controlled=is_alive(control, folder) if control else None,
        control_state=control.state if control else "",
        control_attempt=control.attempt if control else 0,
        exit_code=control.exit_code if control else None,
        reason=control.reason if control else "",
        question=open_question(folder),
    )
