"""Freed memory is reused. In a process of its own: it would change all that follows."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
from dragoman.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def touch():
    return bytearray(64 * 2**20)
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def measured(mode: str) -> tuple[int, int]:
    """Page faults of memory that was had before; the most resident, in KiB (getrusage counts the parent in)."""
    result = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
    num_faults, resident = map(int, result.stdout.split())
    return num_faults, resident


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_memory_that_was_freed_is_not_asked_for_again():
    num_faults, resident = measured("kept")
    assert num_faults < 100 and measured("given back")[0] > 100
    assert resident < 300 * 1024, "what is reserved takes no memory"
