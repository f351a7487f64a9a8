"""How a worker leaves."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.run.control import INTERRUPTED, PREEMPTED

PROGRAM = """
import atexit, os
from dragoman.train.rank import leave
atexit.register(print, "written")

class Unwelcome:
    def __del__(self):
        os.abort()

kept = Unwelcome()
leave(3)
"""


def test_a_worker_leaves_with_its_records_written_and_nothing_taken_apart():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("written\n", "", 3)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, PREEMPTED)])
def test_a_worker_that_is_told_to_stop_while_it_loads_torch_says_nothing(number, code):
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman.train.worker", "{}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    maps = Path(f"/proc/{process.pid}/maps")
    deadline = time.monotonic() + 60
    while "libtorch" not in maps.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert (output, errors, process.returncode) == ("", "", code)
