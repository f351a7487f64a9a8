"""How a host takes part again in a run that goes on without it: the same command starts its agent anew.

The controller leaves what an agent must know in its run folder, for the owner of the run alone; files that begin with
a dot are never copied anywhere.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch.hosts.facts import absolute_path
from dragoman.launch.hosts.session import HostSession, call_each
from dragoman.run.control import is_alive, read_control
from dragoman.run.folder import RunFolder

ADMISSION = ".admission.json"


def keep_agents(run: str, agents: Sequence[dict[str, Any]]) -> None:
    """On the first host: what each agent was told when it was started. There is a secret in it, for nobody else."""
    with suppress(OSError):  # a full disk: then the run goes on, and nobody joins it
        path = absolute_path(run) / ADMISSION
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(list(agents), file)


def missing_agents(run: str) -> dict[str, list[Any]] | None:
    """On the first host: hosts of a living run, and tasks for the agents of those that it goes on without; None where
    nothing runs."""
    folder = RunFolder(absolute_path(run))
    control = read_control(folder)
    if control is None or control.state == "ended" or not is_alive(control, folder):
        return None
    present = [member["name"] for member in control.members]
    try:
        agents: list[dict[str, Any]] = json.loads((folder.path / ADMISSION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        agents = []
    return {"present": present, "missing": [task for task in agents if task["name"] not in present]}


def forget_agents(folder: RunFolder) -> None:
    """The run has ended: the secret is worth nothing any more."""
    with suppress(OSError):
        (folder.path / ADMISSION).unlink(missing_ok=True)


def start_missing(sessions: Sequence[HostSession], run: str) -> list[str] | None:
    """From any machine: start the agents that are missing; their hosts. None where no run goes on."""
    if sessions[0].failure is not None:
        return None
    told = sessions[0].call("missing_agents", run=run)
    if told is None:
        return None
    tasks = told["missing"]
    by_name = {session.host.name: session for session in sessions if session.failure is None}
    back = [task for task in tasks if task["name"] in by_name]
    if not back:
        away = f", without {', '.join(task['name'] for task in tasks)}, which cannot be reached" if tasks else ""
        problem = f"{run} is running on {', '.join(told['present'])}{away}"
        raise DragomanError(problem, "dragoman attach RUN shows it, dragoman stop RUN ends it")
    call_each([by_name[task["name"]] for task in back], "start_agent", [{"task": task} for task in back])
    return [task["name"] for task in back]
