"""Bytes for the link: as long as promised, and as close as their bits allow."""

import pytest
import torch

from dragoman.dist.codec import decode, encode
from dragoman.plan.payload import BITS, encoded_bytes

SIZES = [1, 7, 64, 129, 1000]


def values(size: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(size)) * 1e-4


@pytest.mark.parametrize("precision", BITS)
@pytest.mark.parametrize("size", SIZES)
def test_the_length_is_the_promised_one(precision, size):
    assert encode(values(size), precision).numel() == encoded_bytes(size, precision)


@pytest.mark.parametrize(
    ("precision", "error"), [("fp32", 0), ("bf16", 0.003), ("fp16", 0.004), ("int8", 0.01), ("int4", 0.15)]
)
@pytest.mark.parametrize("size", SIZES)
def test_what_comes_back_is_close(precision, error, size):
    sent = values(size)
    back = decode(encode(sent, precision), size, precision)
    assert back.shape == sent.shape
    assert (back - sent).norm() <= error * sent.norm()


@pytest.mark.parametrize("size", SIZES)
def test_signs_are_kept_and_their_size_is_the_mean(size):
    sent = values(size)
    back = decode(encode(sent, "sign"), size, "sign")
    assert torch.equal(back > 0, sent >= 0)
    last = sent[size - (size % 128 or 128) :].abs().mean().item()
    assert back[-1].abs().item() == pytest.approx(last, rel=0.005), "padding is no part of the mean"


@pytest.mark.parametrize("precision", BITS)
def test_zeros_stay_zeros(precision):
    assert decode(encode(torch.zeros(300), precision), 300, precision).abs().max() == 0


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_blocks_have_scales_of_their_own(precision):
    sent = torch.cat([torch.full((256,), 1e-6), torch.full((256,), 1.0)])
    back = decode(encode(sent, precision), 512, precision)
    assert torch.allclose(back, sent, rtol=0.01)
