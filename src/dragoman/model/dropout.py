"""Dropout whose mask costs little on the CPU. torch draws one slow random number per element there; four fit in one.

Seeded by torch's default generator, like torch's own.
"""

from typing import Any

import torch
import torch.nn.functional as F

LANES = 4  # 16-bit lanes in a 64-bit random number
RESOLUTION = 2**16


class _CpuDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, rate: float) -> torch.Tensor:
        keep = random_mask(x.shape, rate)
        ctx.save_for_backward(keep)
        ctx.scale = 1 / (1 - rate)
        return x.mul(keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor, None]:
        (keep,) = ctx.saved_tensors
        return grad_outputs[0].mul(keep).mul_(ctx.scale), None


def random_mask(shape: torch.Size, rate: float) -> torch.Tensor:
    """True with probability 1 - rate, to 1/65,536."""
    num_elements = shape.numel()
    lanes = torch.empty((num_elements + LANES - 1) // LANES, dtype=torch.int64).random_(-(2**63), None)
    threshold = round(rate * RESOLUTION) - RESOLUTION // 2
    return (lanes.view(torch.int16)[:num_elements] >= threshold).view(shape)


def dropout(x: torch.Tensor, rate: float, training: bool) -> torch.Tensor:
    """Zero a share `rate` of the elements while training and scale up the rest."""
    if not training or rate == 0:
        return x
    if x.device.type == "cpu":
        return _CpuDropout.apply(x, rate)  # type: ignore[no-any-return]
    return F.dropout(x, rate)
