"""What the benchmarks of a GPU share: the state it was found in, and where its milliseconds go."""

import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

Groups = Sequence[tuple[str, str]]  # a name, and a pattern of the kernels that belong to it


def around() -> dict[str, Any]:
    """Name, clocks and power of the GPU at this moment, versions and time."""
    query = ["nvidia-smi", "--query-gpu=name,clocks.sm,clocks.mem,power.draw", "--format=csv,noheader"]
    try:
        seen = subprocess.run(query, check=False, capture_output=True, text=True).stdout.strip()
    except OSError:
        seen = ""
    return {
        "gpu": seen or None,
        "torch": version("torch"),
        "python": sys.version.split()[0],
        "time": time.strftime("%F %R"),
    }


def kernel_groups(work: Callable[[], Any], groups: Groups, num_steps: int = 1) -> dict[str, float]:
    """Milliseconds a step by group of kernels, the longest first."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    found: dict[str, float] = defaultdict(float)
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            group = next((name for name, pattern in groups if re.search(pattern, event.name)), "other")
            found[group] += event.device_time_total / 1e3 / num_steps
    return {name: round(ms, 2) for name, ms in sorted(found.items(), key=lambda item: -item[1])}
