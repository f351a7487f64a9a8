"""Run a command on a host of a lab: a small program that enters the host's namespaces and becomes the command.

`python -m dragoman.launch.lab.entry LAB HOST COMMAND...` keeps environment and folder, from outside the lab or inside.
`python -m dragoman.launch.lab.entry --as-ssh LAB [options] TARGET COMMAND...` is called as the ssh client is and gives
what a login gives: a fresh environment and the home folder. It serves labs without root, where sshd cannot run.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from dragoman.launch.lab.namespaces import HOST_NAMESPACES, die_with_parent, enter, namespace_of, reset_signals
from dragoman.launch.lab.record import LabRecord, read_record

_SSH_OPTIONS_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
_SSH_FAILED = 255
_NOT_FOUND = 127
_FROM_KERNEL = 0x80
_WATCHED = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def main() -> None:
    # Whoever started us may hold signals back for itself.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if sys.argv[1] == "--as-ssh":
        record = read_record(sys.argv[2])
        target, words = split_ssh_arguments(sys.argv[3:])
        name = target.rpartition("@")[2]
        if name not in record.pids:
            print(f"ssh: Could not resolve hostname {name}: Name or service not known", file=sys.stderr)  # noqa: T201
            sys.exit(_SSH_FAILED)
        _log_in(record, name, words)
    record = read_record(sys.argv[1])
    _run(record, sys.argv[2], sys.argv[3:], dict(os.environ), str(Path.cwd()))


def split_ssh_arguments(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The target and the words of the command; options are for a real ssh and mean nothing here."""
    words = list(arguments)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if len(option) == 2 and option[1] in _SSH_OPTIONS_WITH_VALUE and words:
            words.pop(0)
    if not words:
        sys.exit("usage: enter [options] HOST [COMMAND...]")
    return words[0], words[1:]


def _log_in(record: LabRecord, name: str, words: Sequence[str]) -> NoReturn:
    environment = {
        "HOME": record.home,
        "USER": record.user,
        "LOGNAME": record.user,
        "SHELL": record.shell,
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    }
    environment |= {key: os.environ[key] for key in ("TERM", "LANG") if key in os.environ}
    # As sshd does: one string for the shell, or a login shell.
    command = [record.shell, "-c", " ".join(words)] if words else [record.shell, "-l"]
    _run(record, name, command, environment, record.home)


def _run(record: LabRecord, name: str, command: Sequence[str], environment: dict[str, str], folder: str) -> NoReturn:
    is_inside = namespace_of("self", "pid") == record.pid_namespace
    proc = "/proc" if is_inside else f"/proc/{record.switch_pid}/root/proc"
    namespaces = [os.open(f"{proc}/{record.pids[name]}/ns/{kind}", os.O_RDONLY) for kind in HOST_NAMESPACES]
    if not is_inside:
        _enter_process_tree(record)
        # Only children are born into the lab's PIDs.
        child = os.fork()
        if child:
            sys.exit(wait_forwarding(child))
        die_with_parent()
    for namespace in namespaces:
        enter(namespace)
        os.close(namespace)
    if record.cores[name]:
        os.sched_setaffinity(0, record.cores[name])
    reset_signals()
    try:
        os.chdir(folder)
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        print(f"cannot start {command[0]} on host {name}: {error.strerror}", file=sys.stderr)  # noqa: T201
        os._exit(_NOT_FOUND)


def _enter_process_tree(record: LabRecord) -> None:
    kinds = ["pid"]
    if namespace_of("self", "user") != namespace_of(record.switch_pid, "user"):
        kinds.insert(0, "user")
    opened = [os.open(f"/proc/{record.switch_pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
    for namespace in opened:
        enter(namespace)
        os.close(namespace)


def wait_forwarding(child: int, patience_seconds: float | None = None) -> int:
    """Wait for a child, hand on the signals meant for it, and give its exit code as a shell would.

    After a SIGTERM or SIGHUP it has `patience_seconds` left.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        return _wait(child, patience_seconds)
    finally:
        while signal.sigtimedwait(_WATCHED, 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(child: int, patience_seconds: float | None) -> int:
    left_seconds = None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        got = signal.sigwaitinfo(_WATCHED) if left_seconds is None else signal.sigtimedwait(_WATCHED, left_seconds)
        if got is None:
            return 128 + signal.SIGTERM
        if got.si_signo == signal.SIGCHLD:
            continue
        # The terminal's Ctrl-C reached the child too; a second one would mean "at once".
        if got.si_signo != signal.SIGINT or got.si_code != _FROM_KERNEL:
            os.kill(child, got.si_signo)
        if got.si_signo != signal.SIGINT:
            left_seconds = patience_seconds


if __name__ == "__main__":
    main()
