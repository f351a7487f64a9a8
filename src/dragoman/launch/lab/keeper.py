"""The process that outlives `dragoman lab` by a moment: when its standard input closes, the lab ends and is swept away.

`dragoman lab` holds the other end of that pipe, so it closes even when the lab is killed with -9. The rest is done by
the kernel: the switch is the first process of the lab's own PIDs; with it die all processes on all hosts, and with
them their namespaces, mounts and network cards, none of which ever had a name on the machine.
"""

import contextlib
import os
import select
import shutil
import signal
import sys
from pathlib import Path

from dragoman.launch.lab.namespaces import NEW_PIDS, become_root_of_own_user_namespace, unshare
from dragoman.launch.lab.plan import LabPlan
from dragoman.launch.lab.switch import be_switch, report


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    try:
        text = _read_line()
        if text:
            _keep(LabPlan.from_json(text))
    except OSError as error:
        report({"error": error.strerror, "is_denied": True})
    finally:
        _sweep(Path(sys.argv[1]))


def _read_line() -> bytes:
    """The plan, or nothing if the pipe closed first. Unbuffered: nothing else may swallow the end of the pipe."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            return b""
        line += part
    return line


def _keep(plan: LabPlan) -> None:
    if plan.needs_user_namespace:
        become_root_of_own_user_namespace()
    unshare(NEW_PIDS)
    pid = os.fork()
    if pid == 0:
        os.close(0)
        os.open(os.devnull, os.O_RDONLY)
        be_switch(plan)
    report({"switch_pid": pid})
    os.close(1)
    switch = os.pidfd_open(pid)
    select.select([0, switch], [], [])
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _sweep(folder: Path) -> None:
    # The kernel keeps folders of an overlay closed to everybody.
    for path in folder.glob("hosts/*/layer-*/work/work"):
        path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
