"""Emulated hosts to break: their links, disks, clocks and processes, from outside, as accidents do.

Everything lives in namespaces of the lab and goes with it. Each host has a disk of its own, a tmpfs of the lab's
mount namespace that can be made full by making it smaller. Processes of a campaign carry DRAGOMAN_FAULTS in their
environment, and the host they run on: so they are found wherever they went.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Generator, Sequence
from pathlib import Path

import dragoman
from dragoman.launch.lab.lab import Lab, open_lab
from dragoman.launch.lab.link import parse_link, token_bucket
from dragoman.run.folder import RunFolder

MARK, HOST, FOLDER = "DRAGOMAN_FAULTS", "DRAGOMAN_FAULTS_HOST", "DRAGOMAN_FAULTS_FOLDER"
INJECTION = Path(__file__).parent / "fault_injection"
SOURCE = Path(dragoman.__file__).parents[1]
PACE_SECONDS = "0.05"  # of a step, at least
LINK, SLOW_LINK = "100mbit", "1mbit"
ROLES = {
    "worker": "dragoman.train.worker",
    "agent": "dragoman.launch.control.agent",
    "controller": "dragoman.launch.control.controller",
}
WHOLE_DISK = 4 << 30
PAGE = os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def open_fault_hosts(num_hosts: int, work: Path) -> Generator["FaultHosts"]:
    """Hosts a, b, ... while the block lasts. `work` is what they see of the machine: data, and where the disks are."""
    disk = work / "disk"
    disk.mkdir(parents=True, exist_ok=True)
    with open_lab(num_hosts, parse_link(LINK), working_folder=work) as lab:
        hosts = FaultHosts(lab, work, disk)
        try:
            yield hosts
        finally:
            hosts.close()


class FaultHosts:
    """The hosts of one run, and what can be done to them."""

    def __init__(self, lab: Lab, work: Path, disk: Path) -> None:
        self.names = lab.names
        self.run_path = disk / "run"
        self.mark = uuid.uuid4().hex
        self._lab = lab
        self._work = work
        self._disk = disk
        self._started: list[subprocess.Popen[str]] = []
        self._proc = Path(f"/proc/{lab.record.switch_pid}/root/proc")
        for host in self.names:
            self.folder_of(host).mkdir(parents=True)
            self._write_python(host)
            self._in_host(host, "mount", "-t", "tmpfs", "-o", f"size={WHOLE_DISK}", "faults", str(disk))

    def close(self) -> None:
        """End what was typed; the rest ends with the lab."""
        for process in self._started:
            process.kill()
            process.wait(10)
            if process.stdin is not None:
                process.stdin.close()

    # What a person does.

    def type_on(self, host: str, words: Sequence[str]) -> subprocess.Popen[str]:
        """A command of Dragoman on a host, its output in a pipe."""
        command = self._lab.command_on(host, [sys.executable, "-u", "-m", "dragoman", *words])
        environment = {**self._lab.environment(), **self._environment(host)}
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=self._work,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._started.append(process)
        return process

    def adopt(self, process: subprocess.Popen[str]) -> None:
        """One that somebody else started, to end with the rest."""
        self._started.append(process)

    def hosts_file(self, names: Sequence[str], num_workers: int) -> Path:
        """A hosts.toml that every host sees at the same place."""
        path = self._lab.folder / f"hosts-{'-'.join(names)}.toml"
        entries = (
            f'[[host]]\nssh = "{name}"\nworkers = {num_workers}\npython = "{self._python(name)}"\n' for name in names
        )
        path.write_text("".join(entries))
        return path

    # What can be seen from outside.

    def run_folder(self, host: str) -> RunFolder:
        """The run on that host's own disk."""
        return RunFolder(self._proc / str(self._lab.record.pids[host]) / "root" / self.run_path.relative_to("/"))

    def folder_of(self, host: str) -> Path:
        """Where its Python looks for faults; outside of everything that hosts have an overlay on."""
        return self._lab.folder / "faults" / host

    def processes(self, host: str | None = None, role: str | None = None) -> dict[int, str]:
        """Process -> command line, of the campaign's processes in this lab; by the machine's numbers."""
        found: dict[int, str] = {}
        for path in Path("/proc").iterdir():
            if not path.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                settings = path.joinpath("environ").read_bytes().split(b"\0")
                words = (
                    path.joinpath("cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
                )
                is_ours = f"{MARK}={self.mark}".encode() in settings
                is_there = host is None or f"{HOST}={host}".encode() in settings
                if is_ours and is_there and words and (role is None or ROLES[role] in words):
                    found[int(path.name)] = words
        return found

    def newest(self, host: str, role: str) -> list[int]:
        """Those of the attempt that began last: of the one before, some may not have noticed yet that it is over."""
        places = {pid: place for pid in self.processes(host, role) if (place := _parent_and_start(pid)) is not None}
        if not places:
            return []
        parent, _ = max(places.values(), key=lambda place: place[1])
        if role != "worker":  # one of a kind
            return [max(places, key=lambda pid: places[pid][1])]
        return sorted(pid for pid, place in places.items() if place[0] == parent)

    def rank_of(self, pid: int) -> int | None:
        with contextlib.suppress(OSError):
            for setting in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                name, _, value = setting.partition(b"=")
                if name == b"RANK":
                    return int(value)
        return None

    # What goes wrong.

    def send_signal(self, pids: Sequence[int], number: signal.Signals) -> None:
        for pid in pids:
            assert pid > 1, "0 would be this very process group"
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def cut_link(self, host: str) -> None:
        """The cable is out: everything sent is lost, in both directions, and nobody is told."""
        self._in_switch("ip", "link", "set", f"{host}-eth0", "down")

    def mend_link(self, host: str) -> None:
        self._in_switch("ip", "link", "set", f"{host}-eth0", "up")

    def set_link(self, host: str, speed: str) -> None:
        rate = parse_link(speed).to_host_bits_per_second
        assert rate is not None
        shape = token_bucket(rate).split()
        self._in_switch("tc", "qdisc", "replace", "dev", f"{host}-eth0", "root", *shape)
        self._in_host(host, "tc", "qdisc", "replace", "dev", "eth0", "root", *shape)

    def fill_disk(self, host: str, left_bytes: int) -> None:
        """Nothing but `left_bytes` is free from now on; again after something was removed."""
        status = os.statvfs(self.run_folder(host).path.parent)
        used_bytes = (status.f_blocks - status.f_bfree) * status.f_frsize
        wanted = max(PAGE, used_bytes + left_bytes // PAGE * PAGE)
        if wanted != status.f_blocks * status.f_frsize:
            with contextlib.suppress(subprocess.CalledProcessError):  # somebody has just written more than that
                self._in_host(host, "mount", "-o", f"remount,size={wanted}", str(self._disk))

    def free_disk(self, host: str) -> None:
        self._in_host(host, "mount", "-o", f"remount,size={WHOLE_DISK}", str(self._disk))

    def set_clock(self, host: str, ahead_seconds: float) -> None:
        path = self.folder_of(host) / "clock"
        path.with_suffix(".new").write_text(str(ahead_seconds))
        path.with_suffix(".new").replace(path)

    def _environment(self, host: str) -> dict[str, str]:
        return {
            "PYTHONPATH": f"{INJECTION}:{SOURCE}",
            MARK: self.mark,
            HOST: host,
            FOLDER: str(self.folder_of(host)),
            "DRAGOMAN_FAULTS_PACE": PACE_SECONDS,
            "OMP_NUM_THREADS": "1",
            "DRAGOMAN_DEVICE": "cpu",
            "DRAGOMAN_MEASURE_SECONDS": "1",
        }

    def _python(self, host: str) -> Path:
        return self._lab.folder / "faults" / f"python-{host}"

    def _write_python(self, host: str) -> None:
        """What hosts.toml names as the Python of a host: sets the environment, and becomes the real one."""
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self._environment(host).items())
        path = self._python(host)
        path.write_text(f'#!/bin/sh\n{exports}exec {shlex.quote(sys.executable)} "$@"\n')
        path.chmod(0o755)

    def _in_switch(self, *command: str) -> None:
        _run(["nsenter", f"--net=/proc/{self._lab.record.switch_pid}/ns/net", *command])

    def _in_host(self, host: str, *command: str) -> None:
        spaces = self._proc / str(self._lab.record.pids[host]) / "ns"
        _run(["nsenter", f"--net={spaces}/net", f"--mount={spaces}/mnt", *command])


def _parent_and_start(pid: int) -> tuple[int, int] | None:
    """Parent, and start in ticks since the machine's; None where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[19])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, timeout=20, capture_output=True, text=True)
