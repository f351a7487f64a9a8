"""A table of GPUs for plans made before anything can be measured. Data sheets, without sparsity; no torch.

Efficiency is model FLOPs over peak in training a Transformer-base on short sentences, where attention and element-wise
work cost as much as the matrix products. The high figure scales a step measured on an H200 by each card's peak and
memory bandwidth: with fused kernels 24,700 target tokens in 24.4 ms, 13.3 of them matrix products; on cards too old for
those, by torch's own operations, 25,600 in 48 ms with 12. The low figure is half of it.
"""

import difflib
import re
from dataclasses import dataclass

from dragoman.errors import DragomanError

GIB = 2**30
FP32_EFFICIENCY = (0.30, 0.55)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of card."""

    name: str
    pattern: str  # of the driver's name for it, in lower case with single spaces
    memory_bytes: int
    half_flops: float  # fp16 or bf16, fp32 accumulation, tensor cores where it has them
    fp32_flops: float
    memory_bytes_per_second: float
    half_efficiency: tuple[float, float]
    has_bf16: bool = True
    has_nvlink: bool = False  # between the cards of a host, as it is usually rented


def _gpu(
    name: str,
    pattern: str,
    gib: int,
    half: float,
    single: float,
    gb_per_second: float,
    has_bf16: bool = True,
    has_nvlink: bool = False,
) -> Gpu:
    """Peaks in TFLOP/s."""
    half_flops, rate = half * 1e12, gb_per_second * 1e9
    high = half_flops_share(half_flops, rate, is_fused=has_bf16)
    efficiency = (round(high / 2, 3), round(high, 3))
    return Gpu(name, pattern, gib * GIB, half_flops, single * 1e12, rate, efficiency, has_bf16, has_nvlink)


# Transformer-base, measured on an H200 of 989 TFLOP/s and 4.8 TB/s, 366 MFLOP a target token: share of the peak that
# matrix products reach, and bytes a token whose movement would take as long as all the rest.
_TOKEN_FLOPS = 366e6
_FUSED, _PLAIN = (0.69, 2.15e6), (0.79, 6.75e6)


def half_flops_share(peak_flops: float, bytes_per_second: float, is_fused: bool = True) -> float:
    """Model FLOPs over peak that a card of this peak and bandwidth can reach."""
    product_share, token_bytes = _FUSED if is_fused else _PLAIN
    products = _TOKEN_FLOPS / (product_share * peak_flops)
    return _TOKEN_FLOPS / (products + token_bytes / bytes_per_second) / peak_flops


# The first whose pattern fits is meant: special kinds before the general one.
GPUS = (
    _gpu("V100 32GB", r"\bv100\b.*\b32 ?gb?\b", 32, 125, 15.7, 900, has_bf16=False),
    _gpu("V100", r"\bv100\b", 16, 125, 15.7, 900, has_bf16=False),
    _gpu("P100", r"\bp100\b", 16, 19, 9.5, 732, has_bf16=False),
    _gpu("T4", r"\bt4\b", 16, 65, 8.1, 320, has_bf16=False),
    _gpu("A10G", r"\ba10g\b", 24, 70, 31.5, 600),
    _gpu("A10", r"\ba10\b", 24, 125, 31.2, 600),
    _gpu("A30", r"\ba30\b", 24, 165, 10.3, 933),
    _gpu("A40", r"\ba40\b", 48, 149.7, 37.4, 696),
    _gpu("A100 80GB", r"\ba100\b.*\b80 ?(gb?)?\b", 80, 312, 19.5, 2039, has_nvlink=True),
    _gpu("A100 40GB", r"\ba100\b", 40, 312, 19.5, 1555, has_nvlink=True),
    _gpu("L40S", r"\bl40s\b", 48, 362, 91.6, 864),
    _gpu("L40", r"\bl40\b", 48, 181, 90.5, 864),
    _gpu("L4", r"\bl4\b", 24, 121, 30.3, 300),
    _gpu("RTX 2080 Ti", r"2080 ?ti\b", 11, 54, 13.4, 616, has_bf16=False),
    _gpu("RTX 3090", r"3090\b", 24, 71, 35.6, 936),
    _gpu("RTX 4080", r"4080\b", 16, 97.5, 48.7, 717),
    _gpu("RTX 4090", r"4090\b", 24, 165, 82.6, 1008),
    _gpu("RTX 5090", r"5090\b", 32, 209.5, 104.8, 1792),
    _gpu("RTX A4000", r"\ba4000\b", 16, 76.7, 19.2, 448),
    _gpu("RTX A5000", r"\ba5000\b", 24, 111, 27.8, 768),
    _gpu("RTX A6000", r"\ba6000\b", 48, 155, 38.7, 768),
    _gpu("RTX 6000 Ada", r"6000 ?ada\b", 48, 364, 91.1, 960),
    _gpu("H100 PCIe", r"\bh100\b.*\bpcie\b", 80, 756, 51.2, 2039),
    _gpu("H100 NVL", r"\bh100\b.*\bnvl\b", 94, 835, 60, 3938),
    _gpu("H100", r"\bh100\b", 80, 989, 66.9, 3352, has_nvlink=True),
    _gpu("H200", r"\bh200\b", 141, 989, 66.9, 4800, has_nvlink=True),
    _gpu("B200", r"\bb200\b", 180, 2250, 80, 8000, has_nvlink=True),
)


def find_gpu(name: str) -> Gpu:
    """By the name a driver gives (`NVIDIA H100 80GB HBM3`) or people do (`h100`)."""
    plain = re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()
    for gpu in GPUS:
        if re.search(gpu.pattern, plain):
            return gpu
    names = [gpu.name for gpu in GPUS]
    near = difflib.get_close_matches(plain.upper(), names, n=3, cutoff=0.5)
    problem = f"the table has no GPU {name!r}" + (f", did you mean {' or '.join(near)}?" if near else "")
    raise DragomanError(problem, f"it has {', '.join(names)}, and cpu; `dragoman doctor` measures any other")
