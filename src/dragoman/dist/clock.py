"""The time on a device's own terms."""

import time

import torch


def now(device: torch.device) -> float:
    """Seconds, once the device has done what it was told so far: a GPU, and nccl on it, return before they are done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
