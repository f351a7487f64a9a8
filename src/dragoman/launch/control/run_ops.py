"""What the first host of a run does for whoever asks: start its controller and agents, show its log, stop it."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch.control.admission import keep_agents, missing_agents
from dragoman.launch.control.agent import agent_lock
from dragoman.launch.control.detached import last_lines, start_detached
from dragoman.launch.hosts.facts import absolute_path
from dragoman.run.consent import answer, open_question
from dragoman.run.control import CONTROLLER, Control, hosts_log_path, is_alive, read_control
from dragoman.run.folder import RunFolder, create_run_folder, is_held, is_locked

START_SECONDS = 15.0
STOP_SECONDS = 15.0
LEAVE_SECONDS = 20.0  # for an agent to notice that its controller is silent, and to end its workers
POLL_SECONDS = 0.05
BLOCK_BYTES = 1 << 18


def start_controller(task: dict[str, Any]) -> dict[str, Any]:
    """Start it and wait until it listens; where that is."""
    task = {**task, "run": str(absolute_path(task["run"]))}
    folder = RunFolder(Path(task["run"]))
    output = folder.path / "controller.out"
    process = start_detached(CONTROLLER, task, output)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        control = read_control(folder)
        if control is not None and control.pid == process.pid:
            return {"address": control.address, "port": control.port, "pid": control.pid}
        if process.poll() is not None:
            break
        time.sleep(POLL_SECONDS)
    # One that comes up late would hold the run with nobody to look after it.
    process.kill()
    process.wait()
    words = last_lines(output, 1)
    raise DragomanError(f"the controller did not start: {words[0] if words else 'it said nothing'}", f"see {output}")


def start_agent(task: dict[str, Any]) -> int:
    """Start this host's agent; it calls the controller by itself."""
    init = task.get("init")
    if init is not None and not Path(init).is_file():
        raise DragomanError(f"there is no {init} here", "copy the model given with --init to the same path")
    run = absolute_path(task["run"])
    create_run_folder(run)
    task = {**task, "run": str(run)}
    _await_no_agent(agent_lock(task), task["name"])
    return start_detached("dragoman.launch.control.agent", task, run / f"agent.{task['name']}.out").pid


def _await_no_agent(lock: Path, name: str) -> None:
    """The agent of an attempt that is over needs a moment to notice; one that is busy is another controller's."""
    deadline = time.monotonic() + LEAVE_SECONDS
    while is_held(lock):
        if time.monotonic() >= deadline:
            problem = f"{name} still takes part in this run, under a controller on another host"
            raise DragomanError(problem, "stop it there: dragoman stop HOST:RUN")
        time.sleep(POLL_SECONDS)


def look(run: str, offset: int | None = None, num_last: int = 20, wait_seconds: float = 0.0) -> dict[str, Any]:
    """New text of the log since `offset` (None: the last lines), and how the run stands; waits a little for news."""
    folder, control = _controlled(run)
    path = hosts_log_path(folder)
    if offset is None:
        offset = _offset_of_last(path, num_last)
    deadline = time.monotonic() + wait_seconds
    while True:
        was_alive = is_alive(control, folder)
        data = _read(path, offset)
        if data or not was_alive or open_question(folder) is not None or time.monotonic() >= deadline:
            break
        time.sleep(POLL_SECONDS)
        control = read_control(folder) or control
    # Half a line comes whole next time.
    data = data[: data.rfind(b"\n") + 1]
    control = read_control(folder) or control
    return {
        "text": data.decode(errors="replace"),
        "offset": offset + len(data),
        "is_alive": was_alive,
        "state": control.state,
        "exit_code": control.exit_code,
        "reason": control.reason,
        "members": [member["name"] for member in control.members],
        "question": open_question(folder) if was_alive else None,
    }


def answer_run(run: str, is_yes: bool) -> None:
    """What the person at the terminal says to the question that the run asks before its first step."""
    answer(RunFolder(absolute_path(run)), is_yes)


def log_size(run: str) -> int:
    """Where the log of the next attempt will begin."""
    path = hosts_log_path(RunFolder(absolute_path(run)))
    return path.stat().st_size if path.exists() else 0


def stop_run(run: str, is_now: bool = False, is_preempted: bool = False) -> dict[str, Any]:
    """Tell the controller to end the run and wait until it has."""
    folder, control = _controlled(run)
    if control.state == "ended":
        raise DragomanError(f"{run} is not running: it ended ({control.reason})", "nothing is left to stop")
    if not is_alive(control, folder):
        raise DragomanError(
            f"{run} is not running here: its controller on {control.host} is gone, and its workers ended with it",
            "`dragoman train` with the same arguments goes on from the last checkpoint",
        )
    since = time.monotonic()
    os.kill(control.pid, signal.SIGUSR2 if is_now else signal.SIGTERM if is_preempted else signal.SIGINT)
    while control.state != "ended" and is_alive(control, folder):
        if time.monotonic() - since > STOP_SECONDS:
            raise DragomanError(f"the controller did not end within {STOP_SECONDS:.0f} s", "try again with --now")
        time.sleep(POLL_SECONDS)
        control = read_control(folder) or control
    # The controller may have written its last word and left between our two questions.
    control = read_control(folder) or control
    return {
        "state": control.state,
        "exit_code": control.exit_code,
        "reason": control.reason,
        "seconds": time.monotonic() - since,
        "members": [member["name"] for member in control.members],
    }


def _controlled(run: str) -> tuple[RunFolder, Control]:
    folder = RunFolder(absolute_path(run))
    control = read_control(folder)
    if control is not None:
        return folder, control
    if not folder.manifest_path.is_file():
        raise DragomanError(f"{run} is not a run folder", "name the folder given to `dragoman train --run`")
    if is_locked(folder):
        raise DragomanError(
            f"{run} is being trained on one machine and belongs to the command that started it",
            "press Ctrl-C where it runs: it saves and leaves",
        )
    raise DragomanError(f"{run} is not running, and never ran on several hosts", "dragoman report shows what it did")


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(BLOCK_BYTES)
    except OSError:
        return b""


def _offset_of_last(path: Path, num_lines: int) -> int:
    try:
        data = path.read_bytes()
    except OSError:
        return 0
    ends = [index + 1 for index, letter in enumerate(data[-BLOCK_BYTES:]) if letter == 10]
    start = max(0, len(data) - BLOCK_BYTES)
    return start + ends[-num_lines - 1] if len(ends) > num_lines else start


RUN_OPS: Mapping[str, Callable[..., Any]] = {
    "start_controller": start_controller,
    "start_agent": start_agent,
    "look": look,
    "answer_run": answer_run,
    "log_size": log_size,
    "stop_run": stop_run,
    "keep_agents": keep_agents,
    "missing_agents": missing_agents,
}
