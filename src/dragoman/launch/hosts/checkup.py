"""What a host reports about its own health: load, memory, disk, limits, names, cards, GPUs. Runs there; no torch."""

import errno
import os
import re
import resource
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from dragoman.diagnose.preflight.checks import CardFacts, HostFacts
from dragoman.dist.card import CARDS, claimed_speed
from dragoman.dist.processor import cpu_name
from dragoman.errors import DragomanError
from dragoman.launch.hosts import facts
from dragoman.launch.hosts.gpu_facts import gpu_facts
from dragoman.launch.hosts.package import versions
from dragoman.run.folder import create_run_folder

LOAD_SECONDS = 0.5
DISK_BYTES, DISK_PIECE_BYTES = 64_000_000, 8_000_000
DISK_SECONDS = 4.0
STORE_PORT = 29_400  # of a run started by hand
MEASURED = "measured.json"
NUM_REMOVALS, REMOVAL_SECONDS = 30, 0.1
_TOKEN = re.compile(r"[0-9a-f]{16}")


def checkup(folder: str, name: str = "") -> dict[str, Any]:
    """Facts of this host, as JSON. `folder` is where runs will be; the nearest one above it that exists is tried."""
    path = facts.nearest_folder(facts.absolute_path(folder))
    cpu_busy = psutil.cpu_percent(LOAD_SECONDS) / 100
    memory = psutil.virtual_memory()
    gpus, gpu_problem = gpu_facts()
    free_bytes, rate, disk_problem = _disk(path)
    soft_locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    soft_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    found = HostFacts(
        name=name or socket.gethostname(),
        versions=versions(),
        identity=tuple(facts.machine_identity()),
        hostname=socket.gethostname(),
        hostname_addresses=_own_addresses(),
        cpu=cpu_name(),
        num_cores=os.cpu_count() or 0,
        cpu_busy=cpu_busy,
        memory_bytes=memory.total,
        memory_free_bytes=memory.available,
        swap_used_bytes=psutil.swap_memory().used,
        folder=str(path),
        disk_free_bytes=free_bytes,
        disk_bytes_per_second=rate,
        disk_problem=disk_problem,
        max_open_files=None if soft_files == resource.RLIM_INFINITY else soft_files,
        max_locked_bytes=None if soft_locked == resource.RLIM_INFINITY else soft_locked,
        has_infiniband=any(Path("/sys/class/infiniband").glob("*")),
        port_problem=_port_problem(),
        cards=_cards(),
        gpus=gpus,
        gpu_problem=gpu_problem,
    )
    return asdict(found)


def read_clock() -> float:
    """Unix seconds by this host's clock."""
    return time.time()


def _own_addresses() -> tuple[str, ...]:
    try:
        return tuple(socket.gethostbyname_ex(socket.gethostname())[2])
    except OSError:
        return ()


def _disk(folder: Path) -> tuple[int | None, float | None, str]:
    """Free bytes, bytes a second written and synced, and what went wrong; None for what is not known."""
    try:
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < 2 * DISK_BYTES:
            return free_bytes, None, "too full to be tried"
        with tempfile.TemporaryFile(dir=folder) as file:
            return free_bytes, _write_rate(file.fileno()), ""
    except OSError as error:
        return None, None, error.strerror or str(error)


def _write_rate(descriptor: int) -> float:
    """Random bytes, since some disks pack zeros; a slow disk is not written to for long."""
    block = os.urandom(DISK_PIECE_BYTES)
    written, start = 0, time.monotonic()
    while written < DISK_BYTES and time.monotonic() - start < DISK_SECONDS:
        written += os.write(descriptor, block)
        os.fsync(descriptor)
    return written / max(time.monotonic() - start, 1e-3)


def _port_problem() -> str:
    """Bound for a moment, and never listened on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", STORE_PORT))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            return f"port {STORE_PORT} is {'taken' if taken else f'refused: {error.strerror}'}"
    return ""


def _cards() -> tuple[CardFacts, ...]:
    found: list[CardFacts] = []
    for entry in facts.list_addresses():
        name = entry["interface"]
        is_virtual = CARDS.is_dir() and not (CARDS / name / "device").exists()
        found.append(CardFacts(name, entry["address"], claimed_speed(name), is_virtual))
    return tuple(found)


def scratch_folder(token: str) -> Path:
    """Where the ranks of a checkup keep what a run keeps in its folder; the same name on every host."""
    if _TOKEN.fullmatch(token) is None:
        raise DragomanError(f"{token!r} is no token", "this is a defect of Dragoman")
    return Path("~/.cache/dragoman").expanduser() / f"doctor-{token}"


def make_scratch(token: str) -> str:
    """Shaped like a run folder, which is what agents take."""
    return str(create_run_folder(scratch_folder(token)).path)


def read_measured(token: str) -> str | None:
    """What the first rank wrote; None where it did not come to that."""
    path = scratch_folder(token) / MEASURED
    return path.read_text(encoding="utf-8") if path.is_file() else None


def drop_scratch(token: str) -> None:
    """Until nothing is left of it."""
    path = scratch_folder(token)
    for _ in range(NUM_REMOVALS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(REMOVAL_SECONDS)  # an agent that is just ending may write its last word there


CHECKUP_OPS: Mapping[str, Callable[..., Any]] = {
    "checkup": checkup,
    "read_clock": read_clock,
    "make_scratch": make_scratch,
    "read_measured": read_measured,
    "drop_scratch": drop_scratch,
}
