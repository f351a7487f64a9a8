"""How a worker leaves."""

import subprocess
import sys

PROGRAM = """
import atexit, os
from dragoman.train.worker import leave
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
