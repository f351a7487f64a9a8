"""Vectors as bytes for the link: floats, or 8, 4 or 1 bit a value with one scale per block. Pure functions."""

import math

import torch

from dragoman.plan.payload import BLOCKS, SCALE_BYTES, Precision

FLOATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
LEVELS = {"int8": 127, "int4": 7}


def encode(values: torch.Tensor, precision: Precision) -> torch.Tensor:
    """A flat vector as bytes (uint8, on the same device)."""
    if precision in FLOATS:
        return values.to(FLOATS[precision]).contiguous().view(torch.uint8)
    block = BLOCKS[precision]
    blocks = torch.nn.functional.pad(values.float(), (0, -values.numel() % block)).view(-1, block)
    body, scales = _signs(blocks, values.numel()) if precision == "sign" else _levels(blocks, precision)
    return torch.cat([body.flatten(), scales.view(torch.uint8).flatten()])


def decode(payload: torch.Tensor, num_values: int, precision: Precision) -> torch.Tensor:
    """The reverse, as a flat fp32 vector."""
    if precision in FLOATS:
        return payload.view(FLOATS[precision]).float()
    num_blocks = math.ceil(num_values / BLOCKS[precision])
    body = payload[: payload.numel() - num_blocks * SCALE_BYTES].view(num_blocks, -1)
    # A slice may begin at an odd byte; a clone is aligned again.
    scales = payload[-num_blocks * SCALE_BYTES :].clone().view(torch.bfloat16).float().view(-1, 1)
    if precision == "sign":
        steps = (((body.unsqueeze(2) >> _places(body)) & 1).to(torch.int8) * 2 - 1).view(num_blocks, -1)
    elif precision == "int4":
        # Shifting a signed byte right carries its sign along.
        steps = torch.stack([(body << 4).view(torch.int8) >> 4, body.view(torch.int8) >> 4], 2).view(num_blocks, -1)
    else:
        steps = body.view(torch.int8)
    return (steps * scales).flatten()[:num_values]


def _levels(blocks: torch.Tensor, precision: Precision) -> tuple[torch.Tensor, torch.Tensor]:
    """Even steps from minus to plus the block's largest value."""
    top = LEVELS[precision]
    # bf16 rounds a scale down at times: values then land a little beyond the top and are clamped.
    scales = (blocks.abs().amax(1, keepdim=True) / top).bfloat16()
    steps = blocks / scales.float().clamp_min(torch.finfo(torch.float32).tiny)
    levels = steps.round_().clamp_(-top, top).to(torch.int8).view(torch.uint8)
    return (levels[:, 0::2] & 15 | levels[:, 1::2] << 4 if precision == "int4" else levels), scales


def _signs(blocks: torch.Tensor, num_values: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Signs alone, eight in a byte, and the mean size of the block, which makes the error least."""
    bits = (blocks >= 0).to(torch.uint8).view(len(blocks), -1, 8)
    scales = blocks.abs().mean(1, keepdim=True)
    block = blocks.shape[1]
    scales[-1] *= block / (block - (blocks.numel() - num_values))  # padding is no part of the mean
    return (bits << _places(bits)).sum(2, dtype=torch.uint8), scales.bfloat16()


def _places(like: torch.Tensor) -> torch.Tensor:
    return torch.arange(8, dtype=torch.uint8, device=like.device)
