"""The model against the stock Hugging Face classes, and packing against one sentence at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.data.batches import batch_of
from dragoman.model.layout import Layout, length_groups
from dragoman.model.transformer import Transformer, initialize
from dragoman.train.tensors import BatchTensors
from dragoman.translate.export.huggingface import to_huggingface

VOCAB_SIZE = 120
CPU = torch.device("cpu")


def small_model(norm: str = "pre", **settings) -> Transformer:
    config = ModelConfig(
        d_model=32, num_heads=4, d_ffn=64, num_encoder_layers=2, num_decoder_layers=2, max_positions=64, norm=norm,
        **settings,
    )  # fmt: skip
    model = Transformer(config, VOCAB_SIZE)
    initialize(model, seed=3)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms away from 0 and 1, where mistakes would not show
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)
    return model.eval()


def random_pairs(source_lengths: list[int], target_lengths: list[int]) -> BatchTensors:
    random = np.random.default_rng(7)
    sources, targets = (
        [np.append(random.integers(4, VOCAB_SIZE, length - 1), 2) for length in lengths]
        for lengths in (source_lengths, target_lengths)
    )
    return BatchTensors.of(batch_of(sources, targets), CPU)


def logits_of(model: Transformer, piece: BatchTensors) -> torch.Tensor:
    hidden = model(piece.source_ids, piece.source, piece.input_ids, piece.target)
    return hidden @ model.embedding.weight.T


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("attention_bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_logits_equal_the_stock_huggingface_class(norm, attention_bias, activation):
    model = small_model(norm, attention_bias=attention_bias, activation=activation)
    stock = to_huggingface(model)
    piece = random_pairs([5, 9, 3], [4, 7, 12])
    ours = logits_of(model, piece).split(piece.target.lengths.tolist())
    for index, mine in enumerate(ours):
        source = piece.source_ids.split(piece.source.lengths.tolist())[index]
        inputs = piece.input_ids.split(piece.target.lengths.tolist())[index]
        theirs = stock(input_ids=source[None], decoder_input_ids=inputs[None]).logits[0]
        assert torch.allclose(mine, theirs, atol=2e-5), (mine - theirs).abs().max()


def test_stock_class_agrees_on_padded_batches():
    """Their padding mask and position counting, ours by packing."""
    model = small_model("pre")
    stock = to_huggingface(model)
    piece = random_pairs([5, 9], [6, 6])
    sources = torch.nn.utils.rnn.pad_sequence(list(piece.source_ids.split([5, 9])), batch_first=True, padding_value=1)
    inputs = piece.input_ids.view(2, 6)
    theirs = stock(input_ids=sources, attention_mask=(sources != 1).long(), decoder_input_ids=inputs).logits
    assert torch.allclose(logits_of(model, piece), theirs.flatten(0, 1), atol=2e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_packed_batch_equals_its_sentences_alone(norm):
    model = small_model(norm).double()
    source_lengths, target_lengths = [1, 4, 9, 9, 30, 2], [7, 7, 8, 20, 1, 33]
    piece = random_pairs(source_lengths, target_lengths)
    together = model(piece.source_ids, piece.source, piece.input_ids, piece.target)
    alone = [
        model(source, Layout(np.array([len(source)]), CPU), inputs, Layout(np.array([len(inputs)]), CPU))
        for source, inputs in zip(
            piece.source_ids.split(source_lengths), piece.input_ids.split(target_lengths), strict=True
        )
    ]
    assert torch.allclose(together, torch.cat(alone), atol=1e-12)


def test_gradients_flow_through_padding_groups_alike():
    """Many short and a few long sentences make several groups; the gradient must not notice."""
    lengths = [3] * 90 + [40] * 9
    piece = random_pairs(lengths, lengths)
    assert len(length_groups(piece.source.lengths, piece.target.lengths)) > 1
    gradients = []
    for order in (range(99), reversed(range(99))):  # reversed: long ones first, other groups
        model = small_model().double()
        order = list(order)
        sources, inputs = piece.source_ids.split(lengths), piece.input_ids.split(lengths)
        layout = Layout(np.array([lengths[i] for i in order]), CPU)
        out = model(torch.cat([sources[i] for i in order]), layout, torch.cat([inputs[i] for i in order]), layout)
        out.square().sum().backward()
        gradients.append(model.decoder[0].cross_attention.sublayer.kv.weight.grad)
    assert torch.allclose(gradients[0], gradients[1], rtol=1e-10)


def test_no_token_sees_a_later_one_or_another_sentence():
    model = small_model()
    piece = random_pairs([6, 6], [8, 8])
    before = logits_of(model, piece)
    changed = piece.input_ids.clone()
    changed[4] = 99
    after = logits_of(model, replace(piece, input_ids=changed))
    same = (before - after).abs().amax(1) < 1e-6
    assert same.tolist() == [True] * 4 + [False] * 4 + [True] * 8


def test_recomputing_gives_the_same_gradients_and_the_same_dropout():
    gradients = []
    for recomputes in (False, True):
        model = small_model(dropout=0.3, ffn_dropout=0.3).train()
        model.recomputes = recomputes
        piece = random_pairs([6, 9], [8, 5])
        torch.manual_seed(11)
        logits_of(model, piece).square().sum().backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    assert torch.equal(*gradients)


def test_torch_has_the_attention_that_is_called_without_gradients():
    """It needs a GPU to run; that another torch has given it other arguments is seen here."""
    schema = torch.ops.aten._flash_attention_forward.default._schema
    names = [argument.name for argument in schema.arguments if not argument.kwarg_only]
    assert names == [
        "query", "key", "value", "cum_seq_q", "cum_seq_k", "max_q", "max_k", "dropout_p", "is_causal",
        "return_debug_mask",
    ]  # fmt: skip
    assert schema.returns[0].name == "output"
