"""A command on the first host with the terminal of whoever called: Ctrl-C reaches it, its exit code comes back."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.launch.lab.entry import wait_forwarding
from dragoman.launch.lab.lab import Lab

_PATIENCE_SECONDS = 10.0


def check_command(command: Sequence[str]) -> None:
    """Say that there is no such command before any host is made."""
    folders = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    if shutil.which(command[0], path=folders) is None:
        raise DragomanError(f"there is no command {command[0]}", "dragoman lab --link 100mbit -- COMMAND ...")


def run_in_lab(lab: Lab, command: Sequence[str]) -> int:
    """Run it on the first host, in the current folder, and give its exit code."""
    with _own_terminal():
        process = subprocess.Popen(lab.command_on(lab.names[0], command), env=lab.environment())
        process.returncode = wait_forwarding(process.pid, _PATIENCE_SECONDS)
        return process.returncode


@contextlib.contextmanager
def _own_terminal() -> Generator[None]:
    """A shell takes the terminal for itself and, seen from inside the lab, cannot give it back to who had it."""
    try:
        yield
    finally:
        if sys.stdin is not None and sys.stdin.isatty():
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with contextlib.suppress(OSError):
                os.tcsetpgrp(sys.stdin.fileno(), os.getpgrp())
            signal.signal(signal.SIGTTOU, before)
