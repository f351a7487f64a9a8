"""On a GPU: the variable-length kernel against the padded path, fixed shapes, and a short run. Skipped without one."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from command_line import changes, run_dragoman
from dragoman.config import BatchConfig, ModelConfig
from dragoman.data.batches import BatchPlan, batch_of, fill
from dragoman.data.shards import open_shards
from dragoman.dist.world import World
from dragoman.model import attention
from dragoman.model.attention import Pairing
from dragoman.model.layout import Layout
from dragoman.model.loss import linear_cross_entropy
from dragoman.model.transformer import Transformer, initialize
from dragoman.train.feed import Microbatch, feed

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
    direction = torch.randn_like(out_packed)
    out_packed.backward(direction)
    out_padded.backward(direction.double())
    for a, b in zip(packed, padded, strict=True):
        assert relative_error(a.grad, b.grad) < 1e-2


def relative_error(value: torch.Tensor, reference: torch.Tensor) -> float:
    value, reference = value.detach().double(), reference.detach().double()
    return float((value - reference).norm() / reference.norm())


def test_fillers_change_nothing_and_give_no_nan():
    config = ModelConfig(
        d_model=128, num_heads=2, d_ffn=256, num_encoder_layers=2, num_decoder_layers=2, dropout=0.0, ffn_dropout=0.0
    )
    model = Transformer(config, 200)
    initialize(model, 1)
    model.to(CUDA)
    random = np.random.default_rng(1)
    sequences = [[np.append(random.integers(4, 200, n), 2) for n in (3, 9, 20)] for _ in range(2)]
    batch = batch_of(*sequences)
    losses, gradients = [], []
    for each in (batch, fill(batch, 256, 320, 40)):
        model.zero_grad()
        piece = Microbatch.of(each, 0, CUDA)
        with torch.autocast("cuda", torch.bfloat16):
            hidden = model(piece.source_ids, piece.source, piece.input_ids, piece.target)
            sums = linear_cross_entropy(hidden, model.embedding.weight, piece.labels, piece.weights, 0.1)
        sums.loss.backward()
        losses.append(sums.loss.item())
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert torch.isfinite(gradients[1]).all()
    assert relative_error(gradients[1], gradients[0]) < 1e-2


def test_every_microbatch_has_the_same_shape(phrasebook_data):
    plan = BatchPlan(
        open_shards(phrasebook_data).shards, BatchConfig(target_tokens=8192, num_microbatches=2, max_pieces=60), 1
    )
    steps = list(feed(plan, World(0, 1, 0, CUDA), range(1, 2 * plan.steps_per_epoch)))
    pieces = [piece for step in steps for piece in step.microbatches]
    assert len({(len(p.source_ids), len(p.labels)) for p in pieces}) == 1


def test_a_run_on_the_gpu_learns_like_one_on_the_cpu(phrasebook_data, tmp_path: Path):
    curves = {}
    for device in ("cuda", "cpu"):
        settings = changes("train.max_steps=40", "model.d_model=64", "model.dropout=0.0", "model.ffn_dropout=0.0")
        arguments = ("train", "phrasebook", "--data", phrasebook_data, "--run", tmp_path / device, *settings)
        run_dragoman(*arguments, env={**os.environ, "DRAGOMAN_DEVICE": device})
        lines = (tmp_path / device / "steps.jsonl").read_text().splitlines()
        curves[device] = [json.loads(line)["loss"] for line in lines]
    assert curves["cuda"] == pytest.approx(curves["cpu"], rel=2e-2)
    manifest = json.loads((tmp_path / "cuda" / "manifest.json").read_text())
    assert (manifest["device"], manifest["precision"]) == ("cuda", "bf16")


def test_two_workers_share_one_gpu(phrasebook_data, tmp_path: Path):
    """`dragoman demo` starts two workers whatever the machine has."""
    arguments = ("train", "phrasebook", "--data", phrasebook_data, "--run", tmp_path / "run", "--workers", "2")
    run_dragoman(*arguments, *changes("train.max_steps=6"), env={**os.environ, "DRAGOMAN_DEVICE": "cuda"})
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["device"] == "cuda"
