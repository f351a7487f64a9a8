"""How many bytes travel: pure arithmetic on sizes, no torch."""

import math
from typing import Literal

Precision = Literal["fp32", "bf16", "fp16", "int8", "int4", "sign"]

BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "int8": 8, "int4": 4, "sign": 1}
BLOCKS = {"int8": 256, "int4": 64, "sign": 128}  # values that share a scale: fewer bits need a closer one
SCALE_BYTES = 2  # a scale is a bf16


def encoded_bytes(num_values: int, precision: Precision) -> int:
    """Of a vector in this precision, scales included."""
    if precision not in BLOCKS:
        return num_values * BITS[precision] // 8
    block = BLOCKS[precision]
    return math.ceil(num_values / block) * (block * BITS[precision] // 8 + SCALE_BYTES)


def ring_bytes(num_bytes: int, size: int) -> int:
    """What a rank sends when `size` ranks sum so many bytes: a ring passes each part on twice, but for one."""
    return round(2 * (size - 1) / size * num_bytes)
