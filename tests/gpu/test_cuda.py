"""On a GPU: torch's variable-length kernel against the padded path, and short runs. Skipped without one."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from fused_reference import relative_error

from command_line import changes, run_dragoman
from dragoman.model import attention
from dragoman.model.attention import Pairing
from dragoman.model.layout import Layout

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
CUDA = torch.device("cuda")


@pytest.mark.parametrize("causal", [True, False])
def test_packed_attention_equals_padded(causal):
    lengths = np.array([1, 3, 17, 64, 2, 130])
    queries = Layout(lengths, CUDA)
    keys = queries if causal else Layout(lengths[::-1].copy(), CUDA)
    pairing = Pairing(queries, keys, causal)
    tensors = [torch.randn(int(lengths.sum()), 4, 64, device=CUDA, dtype=torch.bfloat16) for _ in range(3)]
    packed, padded = ([t.clone().requires_grad_() for t in tensors] for _ in range(2))
    out_packed = attention.attend(*packed, pairing)
    out_padded = attention._attend_padded(*[t.double() for t in padded], pairing)
    assert relative_error(out_packed, out_padded) < 1e-2
    with torch.no_grad():
        assert attention.attend(*packed, pairing).equal(out_packed)
    direction = torch.randn_like(out_packed)
    out_packed.backward(direction)
    out_padded.backward(direction.double())
    for a, b in zip(packed, padded, strict=True):
        assert relative_error(a.grad, b.grad) < 1e-2


@pytest.mark.parametrize("extra", [(), ("train.kernels=torch",)], ids=["fused", "torch"])
def test_a_run_on_the_gpu_learns_as_in_fp32_on_the_cpu(phrasebook_data, tmp_path: Path, extra):
    """200 steps without dropout: every loss within 2 % of the padded fp32 path, 0.5 % on average."""
    curves = {}
    for device, own in (("cuda", extra), ("cpu", ("train.precision=fp32",))):
        settings = changes(
            "train.max_steps=200", "model.d_model=64", "model.dropout=0.0", "model.ffn_dropout=0.0", *own
        )
        arguments = ("train", "phrasebook", "--data", phrasebook_data, "--run", tmp_path / device, *settings)
        run_dragoman(*arguments, env={**os.environ, "DRAGOMAN_DEVICE": device})
        lines = (tmp_path / device / "steps.jsonl").read_text().splitlines()
        curves[device] = np.array([json.loads(line)["loss"] for line in lines])
    assert len(curves["cuda"]) == 200
    assert curves["cuda"] == pytest.approx(curves["cpu"], rel=2e-2)
    assert np.abs(curves["cuda"] / curves["cpu"] - 1).mean() < 5e-3
    manifest = json.loads((tmp_path / "cuda" / "manifest.json").read_text())
    assert (manifest["device"], manifest["precision"]) == ("cuda", "bf16")
    assert manifest["kernels"] == ("torch (train.kernels = torch)" if extra else "fused")


def test_two_workers_share_one_gpu(phrasebook_data, tmp_path: Path):
    """`dragoman demo` starts two workers whatever the machine has."""
    arguments = ("train", "phrasebook", "--data", phrasebook_data, "--run", tmp_path / "run", "--workers", "2")
    run_dragoman(*arguments, *changes("train.max_steps=6"), env={**os.environ, "DRAGOMAN_DEVICE": "cuda"})
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["device"] == "cuda"
