"""Cables with a delay: a process that carries frames between a host's card and its port of the switch.

Card and port are TAP devices whose far side is this process. The kernel hands over TCP segments of up to 64 KiB uncut
(offloads), so that few frames are many bytes. All frames wait equally long: one queue in order of arrival is enough,
and nothing overtakes. The kernel's own delay, netem, is missing in too many kernels.
"""

import contextlib
import fcntl
import os
import select
import signal
import struct
import time
from collections import deque
from collections.abc import Mapping
from typing import NoReturn

from dragoman.launch.lab.namespaces import enter
from dragoman.launch.lab.plan import LabPlan
from dragoman.launch.lab.wiring import port_name

# From linux/if_tun.h.
_SET_INTERFACE, _SET_OFFLOAD = 0x400454CA, 0x400454D0
_TAP, _NO_PACKET_INFO, _OFFLOAD_HEADER = 0x0002, 0x1000, 0x4000
_OFFLOADS = 0x01 | 0x02 | 0x04  # checksums, TCP over IPv4, TCP over IPv6

_LARGEST_FRAME_BYTES = 65536 + 128
# Frames read from one device before the others have their turn.
_FRAMES_IN_A_ROW = 64


def lay_cables(plan: LabPlan, pids: Mapping[str, int]) -> None:
    """Make both ends of every cable, and start the process that carries frames between them."""
    ends: dict[int, int] = {}
    for host in plan.hosts:
        for card in host.cards:
            near = _tap(port_name(host, card), None)
            far = _tap(card.name, pids[host.name])
            ends |= {near: far, far: near}
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        # Each frame goes through two cables.
        _carry(ends, plan.delay_seconds / 2)
    for end in ends:
        os.close(end)


def _tap(name: str, pid: int | None) -> int:
    """A TAP device in the network of a process, or in ours; it lives as long as the handle."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    if pid is not None:
        there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        enter(there)
        os.close(there)
    try:
        handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        flags = _TAP | _NO_PACKET_INFO | _OFFLOAD_HEADER
        fcntl.ioctl(handle, _SET_INTERFACE, struct.pack("16sH22x", name.encode(), flags))
        fcntl.ioctl(handle, _SET_OFFLOAD, _OFFLOADS)
    finally:
        enter(home)
        os.close(home)
    return handle


def _carry(ends: Mapping[int, int], delay_seconds: float) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError):  # late frames are a longer delay than was asked for
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    waiting: deque[tuple[float, int, bytes]] = deque()
    handles = list(ends)
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select(handles, [], [], pause)
        due = time.monotonic() + delay_seconds
        for handle in ready:
            _take(handle, ends[handle], due, waiting)
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, end, frame = waiting.popleft()
            with contextlib.suppress(OSError):  # a card that is down loses what comes, as everywhere
                os.write(end, frame)


def _take(handle: int, end: int, due: float, waiting: deque[tuple[float, int, bytes]]) -> None:
    for _ in range(_FRAMES_IN_A_ROW):
        try:
            waiting.append((due, end, os.read(handle, _LARGEST_FRAME_BYTES)))
        except OSError:  # nothing there, or the card is down
            return
