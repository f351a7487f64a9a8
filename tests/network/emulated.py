"""Emulated hosts as tests hold them."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.launch.lab.lab import Lab
from dragoman.launch.lab.namespaces import namespace_of


class EmulatedHosts:
    """The hosts of a lab, with a folder of the test's own in which commands run.

    Host a writes into it, every other host sees it and keeps what it writes to itself.
    """

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        # DRAGOMAN_SSH and the like; for processes on the hosts, not on the machine.
        self.environment = lab.environment()
        self._started: list[subprocess.Popen[str]] = []

    @property
    def names(self) -> list[str]:
        return self.lab.names

    def address_of(self, host: str) -> str:
        return next(each.cards[0].address for each in self.lab.plan.hosts if each.name == host)

    def start(
        self, host: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """A command on a host; it dies when its Popen is killed and when the test ends."""
        command = self.lab.command_on(host, [str(word) for word in argv])
        environment = {**self.environment, **(env or {})}
        process = subprocess.Popen(command, env=environment, cwd=self.folder, text=True, **options)
        self._started.append(process)
        return process

    def close(self) -> None:
        """End what was started; what it started in turn ends with the lab."""
        for process in self._started:
            process.kill()
            process.wait(10)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def run_on(
        self, host: str, argv: Sequence[str | Path], timeout: float = 60, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command on a host, to its end, with what it printed."""
        with self.start(host, argv, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired as error:
                process.kill()
                out, err = process.communicate(timeout=10)
                raise AssertionError(f"{argv} on {host} took over {timeout} s:\n{out}\n{err}") from error
        return subprocess.CompletedProcess(list(argv), process.returncode, out, err)

    def output_of(self, host: str, argv: Sequence[str | Path], timeout: float = 60, **options: Any) -> str:
        """What a command that must succeed printed."""
        done = self.run_on(host, argv, timeout, **options)
        assert done.returncode == 0, f"{argv} on {host} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def processes_on(self, host: str) -> dict[int, str]:
        """Process id, as the hosts count them -> command line, of all that runs on a host but its sshd."""
        proc = f"/proc/{self.lab.record.switch_pid}/root/proc"
        network = namespace_of(self.lab.record.pids[host], "net", proc)
        found: dict[int, str] = {}
        for name in (path.name for path in Path(proc).iterdir() if path.name.isdigit()):
            try:
                is_here = namespace_of(name, "net", proc) == network
                words = Path(proc, name, "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            except OSError:  # it ended meanwhile
                continue
            text = b" ".join(words).decode()
            if is_here and text and not text.startswith("sshd:") and int(name) != self.lab.record.pids[host]:
                found[int(name)] = text
        return found
