"""One emulated host: a process with its own network, name and mounts, which then becomes its sshd."""

import json
import os
import signal
import socket
from pathlib import Path
from typing import NoReturn

from dragoman.launch.lab import disk, wiring
from dragoman.launch.lab.batch import run_batch
from dragoman.launch.lab.files import SSH_CONFIG, host_folder
from dragoman.launch.lab.namespaces import NEW_HOST, bind, mount, quieten_network, reset_signals, set_hostname, unshare
from dragoman.launch.lab.plan import EmulatedHost, LabPlan

WIRED = b"wired\n"


def be_host(plan: LabPlan, host: EmulatedHost, channel: socket.socket, sshd: str) -> NoReturn:
    """Says when it exists, waits for its cables, and says when it is ready; never returns."""
    reset_signals(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        notes = _make(plan, host)
        _say(channel, {"notes": notes})
        if channel.recv(len(WIRED)) != WIRED:
            os._exit(1)
        run_batch("ip", wiring.host_links(host))
        run_batch("tc", wiring.host_shaping(host))
        _say(channel, {"notes": []})
    except Exception as error:
        message = f"host {host.name}: {getattr(error, 'message', error)}"
        _say(channel, {"error": message, "hint": getattr(error, "hint", "")})
        os._exit(1)
    channel.close()
    if plan.has_sshd:
        _become_sshd(plan, host, sshd)
    while True:
        signal.pause()


def _say(channel: socket.socket, message: dict[str, object]) -> None:
    channel.sendall(json.dumps(message).encode() + b"\n")


def _make(plan: LabPlan, host: EmulatedHost) -> list[str]:
    unshare(NEW_HOST)
    set_hostname(host.name)
    quieten_network()
    if host.cores:
        os.sched_setaffinity(0, host.cores)
    notes: list[str] = []
    if host != plan.hosts[0]:
        folder = host_folder(plan, host)
        folders = disk.private_folders(plan.home, plan.working_folder)
        notes = [note for note in [disk.own_disk(folders, folder, plan.needs_user_namespace)] if note]
        disk.empty_folders(plan.own_folders, folder)
    if Path("/dev/shm").is_dir():
        mount("tmpfs", "/dev/shm", "tmpfs", options="mode=1777")
    _show_own_cards()
    if plan.has_sshd and not Path("/run/sshd").is_dir():
        # sshd insists on this folder; where its service never ran, the host gets a /run of its own.
        mount("tmpfs", "/run", "tmpfs", options="mode=755")
        Path("/run/sshd").mkdir(mode=0o755)
    _replace_files(plan, host)
    return notes


def _show_own_cards() -> None:
    """/sys/class/net shows the cards of whoever mounted it. Not everybody may mount it: then it shows the machine's."""
    try:
        control_groups = os.open("/sys/fs/cgroup", os.O_RDONLY | os.O_DIRECTORY)
        mount("sysfs", "/sys", "sysfs")
        bind(f"/proc/self/fd/{control_groups}", "/sys/fs/cgroup")
    except OSError:
        return
    os.close(control_groups)


def _replace_files(plan: LabPlan, host: EmulatedHost) -> None:
    shared = Path(plan.folder) / "etc"
    for name in ("hosts", "resolv.conf", "nsswitch.conf"):
        _replace(shared / name, f"/etc/{name}")
    _replace(host_folder(plan, host) / "hostname", "/etc/hostname")
    if plan.has_sshd:
        _replace(Path(plan.folder) / SSH_CONFIG, "/etc/ssh/ssh_config")
        _unlock_login(plan, host)
        _plain_shell(plan, host)


def _replace(source: Path, target: str) -> None:
    if Path(target).exists():
        bind(str(source), target)


def _unlock_login(plan: LabPlan, host: EmulatedHost) -> None:
    """sshd refuses a user with a locked password even with the right key; on the host it is merely unusable."""
    machine = Path("/etc/shadow")
    lines = machine.read_text().splitlines() if machine.exists() else []
    if any(line.startswith(f"{plan.user}:!") for line in lines):
        own = host_folder(plan, host) / "shadow"
        own.touch(mode=0o600)
        own.write_text(f"{plan.user}:*:19000:0:99999:7:::\n")
        _replace(own, str(machine))


def _plain_shell(plan: LabPlan, host: EmulatedHost) -> None:
    """bash reads .bashrc under sshd too, and what that runs may lock a file in the home folder (pyenv does): two hosts
    over one folder would wait for each other."""
    lines = Path("/etc/passwd").read_text().splitlines()
    own = host_folder(plan, host) / "passwd"
    plain = (f"{line.rpartition(':')[0]}:/bin/sh" if line.startswith(f"{plan.user}:") else line for line in lines)
    own.write_text("".join(f"{line}\n" for line in plain))
    own.chmod(0o644)
    _replace(own, "/etc/passwd")


def _become_sshd(plan: LabPlan, host: EmulatedHost, sshd: str) -> NoReturn:
    log = os.open(host_folder(plan, host) / "sshd.log", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 2)
    os.chdir("/")
    os.execv(sshd, [sshd, "-D", "-e", "-f", str(host_folder(plan, host) / "sshd_config")])
