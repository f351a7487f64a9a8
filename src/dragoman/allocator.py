"""Memory allocation on the CPU. Tensors of a step are of the same sizes again and again; by default glibc gives large
ones back to the kernel each time, and zeroing the fresh pages can cost more than the operation itself.
"""

import ctypes
import mmap
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_M_ARENA_MAX = -8
_ADVISED_BYTES = 2**30


def keep_freed_memory() -> None:
    """Reuse freed memory instead of returning it, in large pages. A no-op where the C library is not glibc."""
    if not sys.platform.startswith("linux"):
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return
    libc.mallopt(_M_MMAP_MAX, 0)
    libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    # Of their own, threads would have heaps of 64 MB, and each give its own back when it is empty.
    libc.mallopt(_M_ARENA_MAX, 1)
    _ask_for_huge_pages(libc)


def _ask_for_huge_pages(libc: ctypes.CDLL) -> None:
    """For what the heap will grow into: a search reads all weights at every step, tens of megabytes of small pages."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    block = libc.malloc(_ADVISED_BYTES)  # not touched, so no memory is taken
    if block:
        first = -(-block // mmap.PAGESIZE) * mmap.PAGESIZE
        libc.madvise(first, _ADVISED_BYTES - (first - block), mmap.MADV_HUGEPAGE)
        libc.free(block)
