"""A lab as its user holds it: open it, start commands on its hosts, leave the block and everything is gone."""

import contextlib
import json
import os
import pwd
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.launch.lab.files import HOST_KEY, KNOWN_HOSTS, USER_KEY, ssh_command, write_shared_files
from dragoman.launch.lab.link import Link, describe_rate
from dragoman.launch.lab.namespaces import namespace_of
from dragoman.launch.lab.plan import LabPlan, plan_hosts
from dragoman.launch.lab.record import LabRecord, write_record
from dragoman.launch.lab.requirements import check_machine, denied, may_run_sshd, tool_path

# What the relay carries with little of one core.
FASTEST_DELAYED = 200 * 10**6
_START_SECONDS = 30.0
_END_SECONDS = 10.0


@dataclass(frozen=True)
class Lab:
    plan: LabPlan
    record: LabRecord
    # Things worth a line, such as a disk that could not be made private.
    notes: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return Path(self.plan.folder)

    @property
    def names(self) -> list[str]:
        return [host.name for host in self.plan.hosts]

    def environment(self, outer: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The caller's, with what a command on a host needs to know of the lab."""
        paths = [str(Path(sys.executable).parent), outer.get("PATH", os.defpath)]
        if not self.plan.has_sshd:
            paths.insert(0, str(self.folder / "bin"))
        added = {"DRAGOMAN_SSH": ssh_command(self.plan), "DRAGOMAN_LAB": self.plan.folder, "PATH": ":".join(paths)}
        return {**outer, **added}

    def describe(self) -> list[str]:
        """One line on what was made, and one for each thing that is not as one might think."""
        plan, names = self.plan, self.names
        usual = plan.hosts[0].cards[0].link
        others = [host for host in plan.hosts if host.cards[0].link != usual]
        text = f"{len(names)} host{'s' * (len(names) > 1)} {', '.join(names)} on {_with_article(usual.describe())}"
        text += "".join(f", {host.name} on {_with_article(host.cards[0].link.describe())}" for host in others)
        if plan.delay_seconds:
            text += f", {plan.delay_seconds * 1000:g} ms from host to host"
        if len(plan.hosts[0].cards) > 1:
            text += f", their names lead to {_with_article(plan.hosts[0].cards[-1].link.describe())}"
        text += f"; {', '.join(f'ssh {name}' for name in names)} work{'s' * (len(names) == 1)} inside"
        return [text, *_warnings(plan), *self.notes]

    def command_on(self, name: str, command: Sequence[str]) -> list[str]:
        """The command line, to be typed on this machine, that runs a command on a host."""
        # -P: a file of the user's in the current folder is none of our modules.
        return [sys.executable, "-P", "-m", "dragoman.launch.lab.entry", self.plan.folder, name, *command]


def _with_article(text: str) -> str:
    return f"an {text}" if text.startswith("unlimited") else f"a {text}"


def _warnings(plan: LabPlan) -> list[str]:
    speeds = [card.link.to_host_bits_per_second for host in plan.hosts for card in host.cards]
    if plan.delay_seconds and not all(speed and speed <= FASTEST_DELAYED for speed in speeds):
        return [f"a delay is exact on links of up to {describe_rate(FASTEST_DELAYED)}: faster ones may lose speed"]
    return []


@contextlib.contextmanager
def open_lab(
    num_hosts: int,
    link: Link,
    *,
    delay_seconds: float = 0.0,
    links_of: Mapping[str, Link] | None = None,
    public: Link | None = None,
    own_folders: Sequence[str | Path] = (),
    working_folder: Path | None = None,
) -> Generator[Lab]:
    """Emulated hosts while the block lasts; nothing of them is left afterwards, however it ends."""
    has_sshd = may_run_sshd()
    check_machine(needs_sshd=has_sshd, needs_delay=delay_seconds > 0)
    hosts = plan_hosts(num_hosts, link, dict(links_of or {}), public, sorted(os.sched_getaffinity(0)))
    user, home, shell = _account()
    here = (working_folder or Path.cwd()).resolve()
    plan = LabPlan(
        folder=tempfile.mkdtemp(prefix="dragoman-lab-"),
        hosts=hosts,
        delay_seconds=delay_seconds,
        working_folder=str(here),
        home=home,
        user=user,
        shell=shell,
        own_folders=tuple(str(here / folder) for folder in own_folders),
        has_sshd=has_sshd,
        needs_user_namespace=os.geteuid() != 0,
    )
    keeper: subprocess.Popen[bytes] | None = None
    try:
        keeper = _start_keeper(plan.folder)
        write_shared_files(plan)
        if has_sshd:
            _write_keys(plan)
        _send(plan, keeper)
        yield _wait_for_lab(plan, keeper)
    finally:
        _end(keeper)
        shutil.rmtree(plan.folder, ignore_errors=True)


def _account() -> tuple[str, str, str]:
    """Name, home folder and shell, as a login has them; a user may have no entry, as in containers."""
    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        return "user", os.environ.get("HOME", "/"), "/bin/sh"
    return entry.pw_name, entry.pw_dir, entry.pw_shell or "/bin/sh"


def _write_keys(plan: LabPlan) -> None:
    """Fresh keys; every host shares one, for nobody has to tell them apart by it."""
    folder = Path(plan.folder)
    for name in (HOST_KEY, USER_KEY):
        words = ["-q", "-t", "ed25519", "-N", "", "-C", "dragoman lab", "-f", str(folder / name)]
        _run_keygen([tool_path("ssh-keygen"), *words])
    (folder / KNOWN_HOSTS).write_text("* " + (folder / f"{HOST_KEY}.pub").read_text())


def _run_keygen(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, timeout=_START_SECONDS, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        said = f"it was not done after {_START_SECONDS:.0f} s"
    except subprocess.CalledProcessError as error:
        said = [f"exit code {error.returncode}", *(error.stderr or error.stdout).strip().splitlines()][-1]
    else:
        return
    raise DragomanError(f"ssh-keygen could not make a key: {said}", "try it by hand")


def _start_keeper(folder: str) -> subprocess.Popen[bytes]:
    """From here on the folder is swept away whatever happens to us."""
    with (Path(folder) / "keeper.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "dragoman.launch.lab.keeper", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            bufsize=0,
            start_new_session=True,
        )


def _send(plan: LabPlan, keeper: subprocess.Popen[bytes]) -> None:
    assert keeper.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it ended, and what it said is told by who waits for it
        keeper.stdin.write(plan.to_json().encode() + b"\n")


def _wait_for_lab(plan: LabPlan, keeper: subprocess.Popen[bytes]) -> Lab:
    heard: dict[str, Any] = {}
    deadline = time.monotonic() + _START_SECONDS
    while "pids" not in heard:
        heard |= json.loads(_read_line(plan, keeper, deadline))
        if heard.get("is_denied"):
            raise denied(heard["error"])
        if "error" in heard:
            raise DragomanError(heard["error"], heard.get("hint", ""))
    record = LabRecord(
        switch_pid=heard["switch_pid"],
        pid_namespace=namespace_of(heard["switch_pid"], "pid"),
        pids=heard["pids"],
        cores={host.name: host.cores for host in plan.hosts},
        home=plan.home,
        user=plan.user,
        shell=plan.shell,
    )
    write_record(Path(plan.folder), record)
    return Lab(plan, record, tuple(heard["notes"]))


def _read_line(plan: LabPlan, keeper: subprocess.Popen[bytes], deadline: float) -> bytes:
    assert keeper.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([keeper.stdout], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(keeper.stdout.fileno(), 1) if ready else b""
        if not part:
            said = (Path(plan.folder) / "keeper.log").read_text().strip().splitlines()
            reason = said[-1] if said else "it ended" if ready else f"not ready after {_START_SECONDS:.0f} s"
            raise DragomanError(f"the emulated hosts could not be made: {reason}", "try `ip` and `tc` by hand")
        line += part
    return line


def _end(keeper: subprocess.Popen[bytes] | None) -> None:
    if keeper is None:
        return
    for pipe in (keeper.stdin, keeper.stdout):
        if pipe is not None:
            pipe.close()
    try:
        keeper.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        # Its death takes the switch and so the whole lab along.
        keeper.kill()
        keeper.wait()
