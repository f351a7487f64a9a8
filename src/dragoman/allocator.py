"""Memory allocation on the CPU. Tensors of a step are of the same sizes again and again; by default glibc gives large
ones back to the kernel each time, and zeroing the fresh pages can cost more than the operation itself.
"""

import ctypes
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4


def keep_freed_memory() -> None:
    """Reuse freed memory instead of returning it. A no-op where the C library is not glibc."""
    if not sys.platform.startswith("linux"):
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return
    libc.mallopt(_M_MMAP_MAX, 0)
    libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
