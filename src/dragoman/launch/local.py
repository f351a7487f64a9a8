"""Workers on this machine: one as a plain child, several through torchrun's agent."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager


def start_workers(module: str, arguments: Sequence[str], num_workers: int) -> int:
    """Run `python -m module arguments` as `num_workers` ranks and return the exit code."""
    command = ["-m", module, *arguments]
    threads = str(threads_per_worker(num_workers))
    with _environment(OMP_NUM_THREADS=threads, GLOO_SOCKET_IFNAME=_loopback()):
        if num_workers == 1:
            return _run_alone(command)
        from dragoman.dist.elastic import run_workers

        return run_workers(command, num_workers)


@contextmanager
def _environment(**defaults: str) -> Generator[None]:
    """Variables the workers inherit; what the user set stays, and this process has its own back afterwards."""
    added = {name: value for name, value in defaults.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def threads_per_worker(num_workers: int) -> int:
    """The cores shared out: more threads than cores make every worker slower."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // num_workers)


def _run_alone(command: Sequence[str]) -> int:
    """One worker is a plain child: the command line stays light and both cases end alike."""
    process = subprocess.Popen([sys.executable, *command])
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        code = _wait(process)
    finally:
        signal.signal(signal.SIGTERM, before)
    return code if code >= 0 else 128 - code


def _wait(process: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The terminal sent Ctrl-C to the worker too; it saves and leaves, and we wait for that.
            continue


def _loopback() -> str:
    return "lo0" if sys.platform == "darwin" else "lo"
