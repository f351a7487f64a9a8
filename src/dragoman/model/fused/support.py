"""Whether the fused kernels can run a model on a device, and if not, why. Imports no kernel."""

import importlib.util

import torch

from dragoman.config import ModelConfig

HEAD_WIDTHS = (16, 32, 64, 128)
LEAST_CAPABILITY = (8, 0)  # Ampere: bf16 products, and the oldest that Triton supports


def fused_obstacle(config: ModelConfig, precision: str, device: torch.device) -> str | None:
    """What stands in the way, in a few words; None where nothing does."""
    if device.type != "cuda":
        return "no GPU"
    if precision != "bf16":
        return f"precision {precision}, and the kernels compute in bf16"
    major, minor = torch.cuda.get_device_capability(device)
    if (major, minor) < LEAST_CAPABILITY:
        return f"a GPU of compute capability {major}.{minor}, older than Triton supports"
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    head_width = config.d_model // config.num_heads
    if head_width not in HEAD_WIDTHS:
        return f"heads of width {head_width}, which is none of {', '.join(map(str, HEAD_WIDTHS))}"
    return None
