"""The system's ssh client: how a command reaches a host, and what its complaints mean.

`DRAGOMAN_SSH` replaces the client by anything that is called alike. Knows hosts; knows nothing of what is said there.
"""

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, cast

from dragoman.errors import DragomanError
from dragoman.launch.hosts.hosts import Host

SSH_VARIABLE = "DRAGOMAN_SSH"
# Nobody is there to type a password; and a link that died must not hold a command for hours.
OPTIONS = ("BatchMode=yes", "ConnectTimeout=5", "ServerAliveInterval=10", "ServerAliveCountMax=3")
VENV = ".dragoman/venv"  # below the home folder of a host
VENV_READY = f"{VENV}/ready"  # written last: a virtual environment without it is half made
NO_PYTHON = 127  # as a shell says it
SSH_FAILED = 255  # of the client itself
END_SECONDS = 3.0  # for a client whose input has ended
_BLOCK_BYTES = 1 << 16

SETUP = "`dragoman setup --hosts ...` installs it"


def ssh_command(host: Host, command: str) -> list[str]:
    """The argument list that runs a shell command on a host."""
    client = split_words(os.environ.get(SSH_VARIABLE) or "ssh", SSH_VARIABLE)
    options = [part for option in OPTIONS for part in ("-o", option)]
    port = [] if host.port is None else ["-p", str(host.port)]
    return [*client, *options, *port, host.target, command]


def split_words(text: str, name: str) -> list[str]:
    """The words of an option or variable that a user wrote as for a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise DragomanError(f"{name} {text!r} cannot be read: {error}", "check its quotes") from None


def start_ssh(host: Host, command: str) -> subprocess.Popen[bytes]:
    """The ssh client as a process with pipes; it ends when its input does."""
    arguments = ssh_command(host, command)
    pipe = subprocess.PIPE
    try:
        # A process group of its own: Ctrl-C in the terminal is for us to answer, not for the ssh client.
        return subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0)
    except OSError as error:
        problem = f"cannot be reached: {arguments[0]} does not start ({error.strerror})"
        raise UnreachableError(problem, "install the OpenSSH client on this machine") from None


def end_ssh(process: subprocess.Popen[bytes]) -> None:
    """End the client if it still runs, and close what is ours; its stderr belongs to a `Tail`."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):
            cast("IO[bytes]", stream).close()


def python_command(host: Host, arguments: Sequence[str], environment: Sequence[str] = ()) -> str:
    """A shell command that runs the host's Python with these arguments.

    Which Python is decided there, in the same breath: the one the user named, the one of `dragoman setup`, one at the
    same path as ours, or `python3`. Wrapped in `sh`, because a login shell may be any shell.
    """
    call = shlex.join(["-u", *arguments])
    before = "".join(f"export {shlex.quote(setting)}; " for setting in environment)
    if host.python is not None:
        # Unquoted, a leading ~ would be lost; the path itself may hold spaces.
        script = f'p={shlex.quote(host.python)}; case $p in "~/"*) p=$HOME/${{p#"~/"}};; esac; exec "$p" {call}'
    else:
        script = (
            f'if [ -e "$HOME/{VENV_READY}" ]; then exec "$HOME/{VENV}/bin/python" {call}; fi; '
            f"p={shlex.quote(sys.executable)}; "
            f'if [ -x "$p" ]; then exec "$p" {call}; fi; exec python3 {call}'
        )
    return f"exec sh -c {shlex.quote(before + script)}"


class UnreachableError(DragomanError):
    """The host itself was not reached: nothing is known about what is on it."""


def explain_failure(host: Host, code: int | None, stderr: str) -> DragomanError:
    """What a failed ssh call means and how to mend it; the message does not begin with the host's name."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    reach = shlex.join(["ssh", *([] if host.port is None else ["-p", str(host.port)]), host.target])
    if code == SSH_FAILED:
        for mark, problem, remedy in _SSH_COMPLAINTS:
            if mark in stderr:
                return UnreachableError(f"{problem} ({host.target})", remedy.replace("SSH", f"`{reach}`"))
        last = lines[-1] if lines else "no reason given"
        return UnreachableError(f"ssh cannot reach it: {last}", f"try `{reach}` by hand")
    for mark, problem in _PYTHON_COMPLAINTS:
        if mark in stderr:
            return DragomanError(problem, SETUP)
    if code == NO_PYTHON:
        return DragomanError("has no Python that could be started", f"{SETUP}; or name it: python = ... in hosts.toml")
    return DragomanError(f"ended early: {lines[-1] if lines else f'exit code {code}'}", f"try `{reach}` by hand")


class Tail:
    """The end of what a process says on stderr, read as it comes so that the pipe never fills.

    Nobody waits for its end unless the text is wanted: an ssh client that stays to share its connection keeps it open.
    """

    def __init__(self, process: subprocess.Popen[bytes], max_bytes: int = 8192) -> None:
        self._max_bytes = max_bytes
        self._bytes = b""
        self._thread = threading.Thread(target=self._read, args=(process.stderr,), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What was said so far, when the process has ended or had a moment to end."""
        self._thread.join(END_SECONDS)
        return self._bytes.decode(errors="replace")

    def _read(self, stream: IO[bytes]) -> None:
        with stream, suppress(OSError):
            while block := os.read(stream.fileno(), _BLOCK_BYTES):
                self._bytes = (self._bytes + block)[-self._max_bytes :]


_SSH_COMPLAINTS = (
    ("Could not resolve hostname", "its name does not resolve", "check the spelling, or your ssh config"),
    ("Connection refused", "refuses the connection", "start sshd there, or give the right port in hosts.toml"),
    ("timed out", "does not answer within 5 s", "is it switched on, and its ssh port open to you?"),
    ("No route to host", "cannot be reached: no route to it", "is it switched on, and on this network?"),
    ("Network is unreachable", "cannot be reached: no network", "check this machine's network"),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "has another host key than before", "connect once by hand: SSH"),
    ("Host key verification failed", "has a host key that is not known here", "connect once by hand: SSH"),
    ("Permission denied", "does not accept your ssh key", "put your key there (ssh-copy-id), or load it (ssh-add)"),
    ("Too many authentication failures", "does not accept your ssh key", "name the key in your ssh config"),
)
_PYTHON_COMPLAINTS = (
    ("No module named 'dragoman.", "has another version of Dragoman"),
    ("No module named dragoman.", "has another version of Dragoman"),
    ("No module named 'dragoman'", "has no Dragoman"),
    ("No module named", "has a Dragoman with a package missing"),
)
