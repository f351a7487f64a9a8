"""What the fused kernels are held against, in float64 and plain torch; and where they can run at all.

With TRITON_INTERPRET=1 and Triton installed they run on the CPU, slowly: the way to debug one without a GPU.
"""

import importlib.util
import os

import numpy as np
import pytest
import torch

from dragoman.data.batches import Batch, batch_of
from dragoman.model.fused.words import Sentences, Slots, pack, set_header

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and importlib.util.find_spec("triton") is not None
DEVICE = torch.device("cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu")
needs_kernels = pytest.mark.skipif(
    not (INTERPRETED or (torch.cuda.is_available() and importlib.util.find_spec("triton"))),
    reason="needs a CUDA GPU with Triton (or TRITON_INTERPRET=1)",
)
# Relative error of norms: what fp32 sums, and bf16 factors, leave of a float64 result.
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1.2e-2}
DTYPES = [torch.float32] if INTERPRETED else [torch.float32, torch.bfloat16]

# Odd lengths, length 1, a sentence that fills its blocks exactly and one of several blocks.
SOURCE_LENGTHS = [1, 3, 27, 64, 2, 130, 5]
TARGET_LENGTHS = [2, 1, 33, 60, 64, 101, 7]


def relative_error(value: torch.Tensor, reference: torch.Tensor) -> float:
    """NaN where anything is."""
    value, reference = value.detach().double().cpu(), reference.detach().double().cpu()
    return float((value - reference).norm() / reference.norm())


def assert_close(value: torch.Tensor, reference: torch.Tensor, dtype: torch.dtype) -> None:
    assert relative_error(value, reference) < TOLERANCE[dtype]


def random_batch(num_words: int, seed: int = 0, sources=SOURCE_LENGTHS, targets=TARGET_LENGTHS) -> Batch:
    random = np.random.default_rng(seed)

    def sentences(lengths: list[int]) -> list[np.ndarray]:
        return [np.append(random.integers(4, num_words, n - 1), 2) for n in lengths]

    return batch_of(sentences(sources), sentences(targets))


def words_of(batch: Batch, slots: Slots, seed: int = 1, scale: float = 1.0) -> torch.Tensor:
    """The batch packed, on the device."""
    sides = (batch.source_ids, batch.source_lengths, batch.input_ids, batch.target_ids, batch.target_lengths)
    words = pack(Sentences(*sides), slots)
    assert words is not None
    set_header(words, seed, scale)
    return torch.from_numpy(words).to(DEVICE)


def random_tensor(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(DEVICE, dtype)


def hash_keeps(seed: int, site: int, num_elements: int, rate: float) -> torch.Tensor:
    """Which elements a site keeps, by the same hash in numpy."""

    def mixed(x: np.ndarray) -> np.ndarray:
        x = x ^ (x >> np.uint32(16))
        x = x * np.uint32(0x7FEB352D)
        x = x ^ (x >> np.uint32(15))
        x = x * np.uint32(0x846CA68B)
        return x ^ (x >> np.uint32(16))

    low, high = np.array([seed], dtype=np.uint64).view(np.uint32)
    with np.errstate(over="ignore"):
        key = mixed(mixed(np.uint32(low) + np.uint32(site) * np.uint32(0x9E3779B9)) ^ np.uint32(high))
        bits = mixed(np.arange(num_elements, dtype=np.uint32) + key)
    return torch.from_numpy((bits >> np.uint32(8)) >= np.uint32(round(rate * 2**24)))
