"""Where a rank begins: `python -m dragoman.train.worker JOB [ATTEMPT]`. The rest is in `rank`, which loads torch."""

import ctypes
import os
import signal
import sys

from dragoman.run.control import INTERRUPTED, PREEMPTED, WARNINGS

PR_SET_PDEATHSIG = 1


def end_with_launcher() -> None:
    """Ask Linux for a SIGTERM when the process that started this one dies, so that no worker trains on alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def leave_when_told() -> None:
    """Until the run listens to signals there is nothing to save, and nobody wants to read where loading torch was."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    for number in WARNINGS:
        signal.signal(number, lambda *_: os._exit(PREEMPTED))


if __name__ == "__main__":
    end_with_launcher()
    leave_when_told()
    from dragoman.train.rank import leave, main

    leave(main(*sys.argv[1:]))
