"""The instructions that CTranslate2 computes with.

By itself it takes AVX2 even where there is AVX-512, because the first CPUs that had it lowered their clock for it.
"""

import os
from pathlib import Path

VARIABLE = "CT2_FORCE_CPU_ISA"
CPU_FACTS = Path("/proc/cpuinfo")
MODERN = "avx512_vbmi2"  # since Ice Lake and Zen 4: their clock stays


def use_widest_vectors() -> None:
    """Of this process, and before CTranslate2 computes anything in it. What the environment says already stays."""
    if has_modern_vectors():
        os.environ.setdefault(VARIABLE, "AVX512")


def has_modern_vectors() -> bool:
    try:
        lines = CPU_FACTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(MODERN in line.split() for line in lines if line.startswith("flags"))
