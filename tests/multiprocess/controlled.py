"""A controller and its host agents on this machine, with workers of a few lines: what one run on several hosts is."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil

from dragoman.launch.control.controller import Task
from dragoman.launch.control.detached import start_detached
from dragoman.launch.hosts.members import Member
from dragoman.run.control import Control, hosts_log_path, read_control
from dragoman.run.folder import create_run_folder

TOKEN = "7" * 64
MARK = "CONTROLLED_RUN"  # in the environment of every process of such a run


class ControlledRun:
    """Hosts a, b, ... are processes here; each has a run folder of its own, the controller shares a's."""

    def __init__(self, folder: Path, program: str, num_workers: tuple[int, ...] = (1, 1), **options: Any) -> None:
        self.home = folder
        os.environ[MARK] = str(folder)
        self.members = tuple(
            Member(name, name, None, None, f"127.0.0.{number}", "lo", count)
            for number, (name, count) in enumerate(zip("abcd", num_workers, strict=False), start=1)
        )
        self.folder = create_run_folder(folder / "a")
        command = ("-c", f"import os, signal, sys, time\nrank = int(os.environ['RANK'])\n{program}")
        task = Task(
            str(self.folder.path), 1, self.members, TOKEN, command, options.pop("join_seconds", 30.0), **options
        )
        self.controller = start_detached(
            "dragoman.launch.control.controller", task.to_dict(), folder / "controller.out"
        )
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.control(lambda control: control is not None)

    def start_agents(self, *names: str, token: str = TOKEN) -> "ControlledRun":
        for member in self.members:
            if not names or member.name in names:
                task = {
                    "name": member.name,
                    "run": str(self.home / member.name),
                    "address": member.address,
                    "interface": "lo",
                    "controller_address": self.members[0].address,
                    "controller_port": self.now.port,
                    "token": token,
                    "environment": {"HOST": member.name, "RUN": str(self.home / member.name)},
                }
                output = self.home / f"agent.{member.name}.out"
                self.agents[member.name] = start_detached("dragoman.launch.control.agent", task, output)
        return self

    @property
    def now(self) -> Control:
        control = read_control(self.folder)
        assert control is not None
        return control

    def control(self, is_wanted: Any, seconds: float = 60.0) -> Control:
        """Wait for a state."""
        deadline = time.monotonic() + seconds
        while not is_wanted(control := read_control(self.folder)):
            assert time.monotonic() < deadline, f"{control}\n{self.log()}\n{self.outputs()}"
            time.sleep(0.02)
        return control

    def ended(self, seconds: float = 60.0) -> Control:
        """Wait for the end of everything: controller, agents, workers."""
        control = self.control(lambda control: control.state == "ended", seconds)
        self.controller.wait(5)
        self.all_gone(5)
        return control

    def all_gone(self, seconds: float) -> None:
        """No process that belongs to this run is left."""
        deadline = time.monotonic() + seconds
        while left := self.processes():
            assert time.monotonic() < deadline, left
            time.sleep(0.05)

    def processes(self, host: str | None = None) -> dict[int, list[str]]:
        """Process id -> command line, of the whole run or of a host's agent and what is below it."""
        for process in (self.controller, *self.agents.values()):
            process.poll()  # takes those that ended off the list
        found: dict[int, list[str]] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                environment = process.environ()
                is_ours = environment.get(MARK) == str(self.home) and process.status() != psutil.STATUS_ZOMBIE
                if is_ours and (host is None or environment.get("HOST") == host):
                    found[process.pid] = process.cmdline()
        return found

    def worker_pids(self, host: str) -> list[int]:
        return [pid for pid, words in self.processes(host).items() if "-c" in words]

    def log(self) -> str:
        path = hosts_log_path(self.folder)
        return path.read_text() if path.exists() else ""

    def wait_for_line(self, text: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log():
            assert time.monotonic() < deadline, f"{text!r} is not in:\n{self.log()}\n{self.outputs()}"
            time.sleep(0.02)

    def outputs(self) -> str:
        return "\n".join(f"{path}:\n{path.read_text()}" for path in self.home.glob("*.out"))

    def kill_host(self, host: str) -> None:
        """Its agent first, so that this one has nothing to report."""
        self.agents[host].kill()
        self.agents[host].wait(10)
        for pid in self.processes(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_all(self) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in (self.controller, *self.agents.values()):
            process.wait(10)
