"""The processor of this host, by name."""

import platform
from pathlib import Path


def cpu_name() -> str:
    """As the kernel names it; empty where nobody does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
