"""The whole model through fused kernels: against float64, replayed from a graph, and learning step by step."""

import numpy as np
import pytest
import torch
from fused_reference import (
    DEVICE,
    DTYPES,
    INTERPRETED,
    assert_close,
    needs_kernels,
    random_batch,
    relative_error,
    words_of,
)

from dragoman.config import BatchConfig, ModelConfig
from dragoman.data.batches import BatchPlan
from dragoman.model.flat import FlatModel
from dragoman.model.fused.words import Slots, set_header
from dragoman.model.layout import Layout
from dragoman.model.loss import linear_cross_entropy
from dragoman.model.transformer import Transformer, initialize
from dragoman.train.build import build_model
from dragoman.train.passes import FusedPasses
from dragoman.train.slots import usual_slots
from small_runs import tiny_recipe
from synthetic_shards import shard_of

pytestmark = needs_kernels
SLOTS = Slots(320, 320, (32, 32, 32))
NUM_WORDS = 203
NO_DROPOUT = ("model.dropout=0.0", "model.ffn_dropout=0.0")


def model_of(**settings) -> Transformer:
    sizes = {"d_model": 64, "num_heads": 2, "d_ffn": 160, "num_encoder_layers": 2, "num_decoder_layers": 2}
    config = ModelConfig(**{**sizes, "dropout": 0.0, "ffn_dropout": 0.0, **settings})
    model = Transformer(config, NUM_WORDS)
    initialize(model, 1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms away from 0 and 1, where mistakes would not show
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)
    return model


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "settings",
    [{}, {"norm": "post", "activation": "swish"}, {"attention_bias": False, "activation": "gelu"}],
    ids=["pre", "post", "no-bias"],
)
def test_loss_and_gradients_of_the_whole_model(settings, dtype):
    from dragoman.model.fused.batch import PackedBatch
    from dragoman.model.fused.transformer import FusedTransformer

    model = model_of(**settings)
    exact = model_of(**settings).double().to(DEVICE)
    flat = FlatModel(model.to(DEVICE))
    fused = FusedTransformer(model, flat, dtype, recomputes=settings.get("norm") == "post")
    batch = random_batch(NUM_WORDS)
    loss, sums = fused.losses(PackedBatch(words_of(batch, SLOTS, scale=0.25), SLOTS), 0.1)
    fused.backward(loss)
    source, inputs, labels = (
        torch.from_numpy(ids).to(DEVICE) for ids in (batch.source_ids, batch.input_ids, batch.target_ids)
    )
    hidden = exact(source, Layout(batch.source_lengths, DEVICE), inputs, Layout(batch.target_lengths, DEVICE))
    reference = linear_cross_entropy(hidden, exact.embedding.weight, labels, 0.1)
    (reference.loss * 0.25).backward()
    assert_close(sums, torch.stack([reference.loss, reference.nll]), dtype)
    whole = torch.cat([parameter.grad.flatten() for parameter in exact.parameters()])
    assert relative_error(flat.gradient, whole) < (2e-5 if dtype == torch.float32 else 3e-2)
    for name, own, parameter in zip(flat.names, flat.views(flat.gradient), exact.parameters(), strict=True):
        error = float((own.double() - parameter.grad).norm() / parameter.grad.norm())
        assert error < (1e-4 if dtype == torch.float32 else 1e-1), name


@pytest.mark.skipif(INTERPRETED, reason="graphs need a GPU")
def test_a_replayed_pass_equals_one_without_a_graph_and_drops_anew():
    from dragoman.model.fused.batch import PackedBatch

    recipe = tiny_recipe("train.precision=bf16", "model.d_model=64", "model.num_heads=2")
    plan = BatchPlan(
        [shard_of(np.random.default_rng(1).integers(2, 40, (500, 2)))],
        BatchConfig(target_tokens=1_000, num_microbatches=2, max_pieces=60),
        1,
    )
    built = build_model(recipe, 600, DEVICE)
    assert built.fused is not None, built.obstacle
    passes = FusedPasses(built, recipe, usual_slots(plan))
    assert not built.flat.gradient.any(), "capturing leaves no trace"
    batch = plan.batch(plan.step(1), 0)
    results = []
    piece = passes.piece(batch, 0)
    for seed in (3, 4):
        built.flat.zero()
        sums = passes.forward(piece, seed, 1_000).clone()
        passes.backward()
        results.append((sums, built.flat.gradient.clone()))
    built.flat.zero()
    words = piece.blocks[0].clone()
    set_header(words.numpy(), 3, 1 / 1_000)
    loss, sums = built.fused.losses(PackedBatch(words.to(DEVICE), passes._batch.slots), recipe.train.label_smoothing)
    built.fused.backward(loss)
    replayed, other_seed = results
    assert_close(sums, replayed[0], torch.float32)
    assert_close(built.flat.gradient, replayed[1], torch.bfloat16)
    assert not torch.equal(replayed[0], other_seed[0])


@pytest.mark.skipif(INTERPRETED, reason="graphs need a GPU")
def test_a_microbatch_that_is_too_full_takes_several_passes():
    recipe = tiny_recipe("train.precision=bf16", "model.d_model=64", "model.num_heads=2", *NO_DROPOUT)
    shard = shard_of(np.random.default_rng(1).integers(2, 40, (500, 2)))
    small, large = (
        BatchPlan([shard], BatchConfig(target_tokens=tokens, num_microbatches=1, max_pieces=60), 1)
        for tokens in (500, 1_500)
    )
    built = build_model(recipe, 600, DEVICE)
    batch = large.batch(large.step(1), 0)
    results = []
    for plan in (large, small):
        passes = FusedPasses(built, recipe, usual_slots(plan))
        piece = passes.piece(batch, 0)
        built.flat.zero()
        sums = passes.forward(piece, 3, 1_500).clone()
        passes.backward()
        results.append((len(piece.blocks), sums, built.flat.gradient.clone()))
    assert results[0][0] == 1 and results[1][0] > 2
    assert_close(results[1][1], results[0][1], torch.float32)
    assert_close(results[1][2], results[0][2], torch.bfloat16)
