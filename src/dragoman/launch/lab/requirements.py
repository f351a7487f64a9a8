"""What a machine must have for a lab, and what to say when it has not."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from dragoman.errors import DragomanError

_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}
# Where system programs lie that a user's PATH often leaves out.
_SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin"


class LabUnavailable(DragomanError):  # noqa: N818 - a machine without namespaces is no mistake
    """This machine, or this user, cannot have emulated hosts."""


def tool_path(tool: str) -> str:
    path = find_tool(tool)
    if path is None:
        package = _PACKAGES[tool]
        raise LabUnavailable(f"{tool} is missing on this machine", f"install {package}: sudo apt-get install {package}")
    return path


def find_tool(tool: str) -> str | None:
    return shutil.which(tool) or shutil.which(tool, path=_SYSTEM_FOLDERS)


def check_machine(needs_sshd: bool, needs_delay: bool) -> None:
    if not sys.platform.startswith("linux"):
        raise LabUnavailable(
            "emulated hosts need Linux: they are made of network namespaces",
            "run this on a Linux machine or in a Linux virtual machine",
        )
    for tool in ("ip", "tc", *(("sshd", "ssh", "ssh-keygen") if needs_sshd else ())):
        tool_path(tool)
    if needs_delay and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise LabUnavailable("--delay needs /dev/net/tun, which is missing or closed to this user", with_sudo())


def may_run_sshd() -> bool:
    """Root may, except in a user namespace that cannot change groups, as every login does."""
    if os.geteuid() != 0:
        return False
    permission = Path("/proc/self/setgroups")
    return not permission.exists() or permission.read_text().strip() == "allow"


def denied(reason: str) -> LabUnavailable:
    """The kernel said no."""
    if os.geteuid() == 0:
        hint = "in a container, start it with all rights: docker run --privileged ..."
        return LabUnavailable(f"this root user may not make namespaces ({reason})", hint)
    return LabUnavailable(f"user namespaces are not allowed here without root ({reason})", with_sudo())


def with_sudo() -> str:
    """The line to type: sudo knows neither the PATH nor the virtual environment of who calls it."""
    return "as root: " + shlex.join(["sudo", sys.executable, "-m", "dragoman.cli", *sys.argv[1:]])
