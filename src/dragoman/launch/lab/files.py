"""The files that make an emulated host look like a machine: names, ssh, login. Texts, and where they lie."""

import re
import shlex
import sys
from pathlib import Path

from dragoman.launch.lab.plan import EmulatedHost, LabPlan

SSH_CONFIG, ENTER, RECORD = "ssh_config", "enter", "lab.json"
USER_KEY, HOST_KEY, KNOWN_HOSTS = "user_key", "host_key", "known_hosts"
SSH_PORT = 22


def host_folder(plan: LabPlan, host: EmulatedHost) -> Path:
    return Path(plan.folder) / "hosts" / host.name


def hosts_text(plan: LabPlan) -> str:
    """/etc/hosts: a name leads to the card by which the host is reached from outside."""
    return "127.0.0.1 localhost\n" + "".join(f"{host.login_address} {host.name}\n" for host in plan.hosts)


def nsswitch_text(machine_text: str) -> str:
    """The machine's own, but host names come from /etc/hosts alone: there is nobody to ask."""
    text, num_found = re.subn(r"^hosts:.*$", "hosts: files", machine_text, flags=re.MULTILINE)
    return text if num_found else f"{text}\nhosts: files\n"


def ssh_config_text(plan: LabPlan) -> str:
    folder = plan.folder
    shared = (
        f'Host *\n  User {plan.user}\n  Port {SSH_PORT}\n  IdentityFile "{folder}/{USER_KEY}"\n  IdentitiesOnly yes\n'
        f'  UserKnownHostsFile "{folder}/{KNOWN_HOSTS}"\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n'
        "  CheckHostIP no\n  LogLevel ERROR\n"
    )
    return "".join(f"Host {host.name}\n  HostName {host.login_address}\n" for host in plan.hosts) + shared


def sshd_config_text(plan: LabPlan, host: EmulatedHost) -> str:
    folder = plan.folder
    return (
        f'ListenAddress {host.login_address}:{SSH_PORT}\nHostKey "{folder}/{HOST_KEY}"\n'
        f'AuthorizedKeysFile "{folder}/{USER_KEY}.pub"\nPidFile none\nPermitRootLogin yes\n'
        "AuthenticationMethods publickey\nPubkeyAuthentication yes\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nUseDNS no\nPrintMotd no\nPrintLastLog no\n"
        "MaxStartups 100\nMaxSessions 100\nSubsystem sftp internal-sftp\n"
    )


def enter_text(plan: LabPlan) -> str:
    """A script that is called as the ssh client is, for labs without sshd."""
    words = [sys.executable, "-P", "-m", "dragoman.launch.lab.entry", "--as-ssh", plan.folder]
    return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'


def ssh_command(plan: LabPlan) -> str:
    """What DRAGOMAN_SSH is to be."""
    if plan.has_sshd:
        return shlex.join(["ssh", "-F", f"{plan.folder}/{SSH_CONFIG}"])
    return shlex.quote(f"{plan.folder}/{ENTER}")


def write_shared_files(plan: LabPlan) -> None:
    """All but the keys."""
    folder = Path(plan.folder)
    (folder / "etc").mkdir()
    (folder / "etc" / "hosts").write_text(hosts_text(plan))
    (folder / "etc" / "resolv.conf").write_text("")
    machine = Path("/etc/nsswitch.conf")
    (folder / "etc" / "nsswitch.conf").write_text(nsswitch_text(machine.read_text() if machine.exists() else ""))
    for host in plan.hosts:
        host_folder(plan, host).mkdir(parents=True)
        (host_folder(plan, host) / "hostname").write_text(f"{host.name}\n")
        if plan.has_sshd:
            (host_folder(plan, host) / "sshd_config").write_text(sshd_config_text(plan, host))
    if plan.has_sshd:
        (folder / SSH_CONFIG).write_text(ssh_config_text(plan))
        return
    (folder / ENTER).write_text(enter_text(plan))
    (folder / ENTER).chmod(0o755)
    # `ssh b` typed by hand finds the same script.
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").symlink_to(folder / ENTER)
