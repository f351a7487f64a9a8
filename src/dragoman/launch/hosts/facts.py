"""What a host knows about itself: versions, network cards, GPUs, folders. Runs on the host; no torch."""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import psutil

from dragoman.data.shards import open_shards
from dragoman.errors import DragomanError
from dragoman.launch.hosts.package import versions

_NAMESPACES = ("net", "mnt")
_GPU_QUERY_SECONDS = 20.0


def host_facts() -> dict[str, Any]:
    """Everything that does not depend on the run."""
    return {
        "hostname": socket.gethostname(),
        "identity": machine_identity(),
        "versions": versions(),
        "num_gpus": count_gpus(),
        "addresses": list_addresses(),
        "ssh_address": ssh_address(),
    }


def machine_identity() -> list[str]:
    """Equal in two processes that see the same machine, network and file system; off Linux, the same machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return [boot, *(str(Path(f"/proc/self/ns/{name}").readlink()) for name in _NAMESPACES)]
    except OSError:
        # Not Linux: the name of the machine and its boot time are the best there is.
        return [socket.gethostname(), str(int(psutil.boot_time()))]


def count_gpus() -> int:
    """NVIDIA GPUs that a worker here would see."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([entry for entry in visible.split(",") if entry.strip() not in ("", "-1")])
    if shutil.which("nvidia-smi") is None:
        return 0
    try:
        query = ["nvidia-smi", "--list-gpus"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=_GPU_QUERY_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in done.stdout.splitlines()) if done.returncode == 0 else 0


def list_addresses() -> list[dict[str, Any]]:
    """IPv4 addresses of the cards that are up, loopback left out."""
    stats = psutil.net_if_stats()
    return [
        {"interface": interface, "address": entry.address, "netmask": entry.netmask or "255.255.255.255"}
        for interface, entries in psutil.net_if_addrs().items()
        if interface in stats and stats[interface].isup
        for entry in entries
        if entry.family == socket.AF_INET and not entry.address.startswith("127.")
    ]


def ssh_address() -> str | None:
    """The address of this host that the ssh connection came in by."""
    parts = os.environ.get("SSH_CONNECTION", "").split()
    return parts[2] if len(parts) == 4 else None


def inspect_folders(data: str, run: str) -> dict[str, Any]:
    """The data folder by its manifest and the sizes of its files, and the place where the run will be written."""
    data_path, run_path = absolute_path(data), absolute_path(run)
    above = nearest_folder(run_path)
    return {
        "data": {"path": str(data_path), **_inspect_data(data_path)},
        "run": {
            "path": str(run_path),
            "free_bytes": shutil.disk_usage(above).free,
            "is_writable": os.access(above, os.W_OK | os.X_OK),
        },
    }


def absolute_path(path: str) -> Path:
    """Relative to the login folder, which is where the other side of a session works."""
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100 - a symbolic link stays as it was given


def _inspect_data(path: Path) -> dict[str, Any]:
    try:
        return {"fingerprint": open_shards(path).manifest.fingerprint, "problem": "", "exists": True}
    except DragomanError as error:
        problem = error.message
    except OSError as error:
        problem = f"cannot read {error.filename or path}: {error.strerror}"
    return {"fingerprint": "", "problem": problem, "exists": os.path.exists(path)}  # noqa: PTH110 - it never raises


def nearest_folder(path: Path) -> Path:
    """The path itself, or what exists of the way to it."""
    # A folder that may not be looked into counts as none: `Path.is_dir` would raise.
    return next(folder for folder in (path, *path.parents) if os.path.isdir(folder))  # noqa: PTH112
