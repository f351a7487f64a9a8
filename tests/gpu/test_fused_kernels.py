"""Every fused kernel, forward and backward, against float64: fresh random inputs, odd lengths, an empty tail."""

import math
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fused_reference import (
    DEVICE,
    DTYPES,
    assert_close,
    hash_keeps,
    needs_kernels,
    random_batch,
    random_tensor,
    words_of,
)

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel
from dragoman.model.fused.words import Slots
from dragoman.train.optim import Optimizer

pytestmark = needs_kernels
SLOTS = Slots(320, 320, (32, 32, 32))  # more than the tokens: a tail that belongs to no sentence
SEED, SITE = 0x1234_5678_9ABC_DEF0 >> 1, 7


@cache
def leftover():
    from dragoman.model.fused.leftover import Leftover

    return Leftover(torch.device(DEVICE))


def weight_of(value: torch.Tensor, dtype: torch.dtype = torch.float32):
    from dragoman.model.fused.weight import Weight

    master = value.to(DEVICE, torch.float32)
    return Weight(master, master.to(dtype), torch.zeros_like(master), leftover())


def dropout_of(rate: float):
    from dragoman.model.fused.dropout import Dropout

    seed = torch.from_numpy(np.array([SEED], dtype=np.uint64).view(np.int32)).to(DEVICE)
    return Dropout(rate, SITE, seed)


def kept(shape: tuple[int, ...], rate: float) -> torch.Tensor:
    """The mask that the kernels use, already scaled."""
    mask = hash_keeps(SEED, SITE, math.prod(shape), rate).view(shape).to(DEVICE)
    return mask.double() / (1 - rate)


def dense_attention(q, k, v, num_heads: int, seen: torch.Tensor) -> torch.Tensor:
    """Every head over the keys a query sees; zeros where it sees none."""
    heads = [x.view(x.shape[0], num_heads, -1).transpose(0, 1) for x in (q, k, v)]
    scores = heads[0] @ heads[1].transpose(1, 2) / math.sqrt(heads[0].shape[-1])
    weights = torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1).nan_to_num(0.0)
    return (weights @ heads[2]).transpose(0, 1).flatten(1)


def seen_keys(query_lengths, key_lengths, num_queries: int, num_keys: int, causal: bool) -> torch.Tensor:
    def owners(lengths, size: int, none: int) -> torch.Tensor:
        ids = np.full(size, none)
        ids[: sum(lengths)] = np.repeat(np.arange(len(lengths)), lengths)
        return torch.from_numpy(ids).to(DEVICE)

    seen = owners(query_lengths, num_queries, -1)[:, None] == owners(key_lengths, num_keys, -2)[None, :]
    return seen & torch.ones_like(seen).tril() if causal else seen


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("head_width", [16, 64])
@pytest.mark.parametrize("kind", ["source", "target", "cross"])
def test_attention(kind, head_width, dtype):
    from dragoman.model.fused.attention import cross_attention, self_attention
    from dragoman.model.fused.batch import PackedBatch

    num_heads = 2
    width = num_heads * head_width
    batch = random_batch(100, seed=head_width)
    packed = PackedBatch(words_of(batch, SLOTS), SLOTS)
    lengths = {"source": batch.source_lengths, "target": batch.target_lengths}
    queries, keys = (kind, kind) if kind != "cross" else ("target", "source")
    num_queries, num_keys = getattr(SLOTS, queries), getattr(SLOTS, keys)
    q, k, v = (
        random_tensor(n, width, dtype=dtype, seed=n + i) for i, n in enumerate((num_queries, num_keys, num_keys))
    )
    sight = {"source": packed.among_source, "target": packed.among_target, "cross": packed.to_source}[kind]
    if kind == "cross":
        inputs = [q.requires_grad_(), torch.cat([k, v], dim=1).requires_grad_()]
        biases = [weight_of(torch.zeros(width)), weight_of(torch.zeros(2 * width))]
        out = cross_attention(*inputs, num_heads, sight, (biases[0], biases[1]))
    else:
        inputs = [torch.cat([q, k, v], dim=1).requires_grad_()]
        biases = [weight_of(torch.zeros(3 * width))]
        out = self_attention(*inputs, num_heads, sight, biases[0])
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    parts = (exact[0], *exact[1].chunk(2, dim=1)) if kind == "cross" else exact[0].chunk(3, dim=1)
    seen = seen_keys(lengths[queries], lengths[keys], num_queries, num_keys, kind == "target")
    num_real = int(lengths[queries].sum())
    reference = dense_attention(*parts, num_heads, seen)
    assert_close(out[:num_real], reference[:num_real], dtype)
    assert torch.isfinite(out).all()
    direction = random_tensor(num_queries, width, dtype=dtype, seed=99)
    direction[num_real:] = 0
    out.backward(direction)
    leftover().finish()
    reference.backward(direction.double())
    for own, other, bias in zip(inputs, exact, biases, strict=True):
        assert_close(own.grad, other.grad, dtype)
        assert_close(bias.gradient, other.grad.sum(0), dtype)


def test_a_token_of_no_sentence_sees_nothing_and_is_not_seen():
    from dragoman.model.fused.attention import cross_attention
    from dragoman.model.fused.batch import PackedBatch

    batch = random_batch(100)
    packed = PackedBatch(words_of(batch, SLOTS), SLOTS)
    q, kv = random_tensor(320, 32), random_tensor(320, 64)
    before = cross_attention(q, kv, 2, packed.to_source)
    kv[batch.source_lengths.sum() :] = 1e4
    out = cross_attention(q, kv, 2, packed.to_source)
    assert out.equal(before)
    assert not out[batch.target_lengths.sum() :].any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("width", [64, 96])
@pytest.mark.parametrize("goes_on", [True, False])
def test_residual_sum_and_norm(width, rate, dtype, goes_on):
    from dragoman.model.fused.norm import add_norm
    from dragoman.model.fused.weight import Norm

    num_tokens = 77
    x, change = random_tensor(num_tokens, width, seed=1), random_tensor(num_tokens, width, dtype=dtype, seed=2)
    bias, scale, shift = (weight_of(random_tensor(width, seed=seed)) for seed in (3, 4, 5))
    x.requires_grad_(), change.requires_grad_()
    total, normed = add_norm(x, change, bias, Norm(scale, shift), dropout_of(rate))
    exact = [t.detach().double().requires_grad_() for t in (x, change, bias.master, scale.master, shift.master)]
    reference = exact[0] + (exact[1] + exact[2]) * kept((num_tokens, width), rate)
    reference_normed = F.layer_norm(reference, (width,), exact[3], exact[4])
    assert_close(total, reference, torch.float32)
    assert_close(normed, reference_normed, dtype)
    directions = [random_tensor(num_tokens, width, seed=6), random_tensor(num_tokens, width, dtype=dtype, seed=7)]
    loss = (normed * directions[1]).sum() + ((total * directions[0]).sum() if goes_on else 0)
    loss.backward()
    leftover().finish()
    reference_loss = (reference_normed * directions[1].double()).sum()
    (reference_loss + ((reference * directions[0].double()).sum() if goes_on else 0)).backward()
    grads = (x.grad, change.grad, bias.gradient, scale.gradient, shift.gradient)
    for own, other in zip(grads, exact, strict=True):
        assert_close(own, other.grad, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_norm_of_a_stream_alone(dtype):
    from dragoman.model.fused.norm import norm_only
    from dragoman.model.fused.weight import Norm

    x = random_tensor(50, 64).requires_grad_()
    scale, shift = weight_of(random_tensor(64, seed=1)), weight_of(random_tensor(64, seed=2))
    normed = norm_only(x, Norm(scale, shift), dtype)
    exact = [t.detach().double().requires_grad_() for t in (x, scale.master, shift.master)]
    reference = F.layer_norm(exact[0], (64,), *exact[1:])
    assert_close(normed, reference, dtype)
    direction = random_tensor(50, 64, dtype=dtype, seed=3)
    normed.backward(direction)
    leftover().finish()
    reference.backward(direction.double())
    for own, other in zip((x.grad, scale.gradient, shift.gradient), exact, strict=True):
        assert_close(own, other.grad, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.2])
@pytest.mark.parametrize("name", ["relu", "gelu", "swish"])
def test_activation(name, rate, dtype):
    from dragoman.model.fused.activation import activate

    shape = (67, 700)
    u, bias = random_tensor(*shape, dtype=dtype).requires_grad_(), weight_of(random_tensor(shape[1], seed=1))
    h = activate(u, bias, name, dropout_of(rate))
    exact = [u.detach().double().requires_grad_(), bias.master.double().requires_grad_()]
    function = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}[name]
    reference = function(exact[0] + exact[1]) * kept(shape, rate)
    assert_close(h, reference, dtype)
    direction = random_tensor(*shape, dtype=dtype, seed=2)
    bias.gradient.fill_(1.0)  # gradients gather: what is there stays
    h.backward(direction)
    for _ in range(2):  # what is finished is done once
        leftover().finish()
    reference.backward(direction.double())
    assert_close(u.grad, exact[0].grad, dtype)
    assert_close(bias.gradient - 1, exact[1].grad, dtype)


@pytest.mark.parametrize("rate", [0.0, 0.25])
@pytest.mark.parametrize("deterministic", [False, True])
def test_embedding(rate, deterministic):
    from dragoman.model.fused.batch import PackedBatch
    from dragoman.model.fused.embedding import embed

    batch = random_batch(90)
    packed = PackedBatch(words_of(batch, SLOTS, seed=SEED), SLOTS)
    words, positions = weight_of(random_tensor(90, 48)), random_tensor(256, 48, seed=1)
    root = torch.zeros(1, device=DEVICE, requires_grad=True)
    ids, first = packed.part("input_ids"), packed.part("target_first")
    x = embed(root, ids, first, words, positions, dropout_of(rate), torch.float32, deterministic)
    num_real = int(batch.target_lengths.sum())
    places = torch.from_numpy(np.concatenate([np.arange(n) for n in batch.target_lengths])).to(DEVICE)
    table = words.master.double().requires_grad_()
    reference = table[torch.from_numpy(batch.input_ids).to(DEVICE)] * math.sqrt(48) + positions.double()[places]
    reference = reference * kept((320, 48), rate)[:num_real]
    assert_close(x[:num_real], reference, torch.float32)
    direction = random_tensor(320, 48, seed=2)
    direction[num_real:] = 0
    x.backward(direction)
    reference.backward(direction[:num_real].double())
    assert_close(words.gradient, table.grad, torch.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("num_words", [257, 9_000])
def test_cross_entropy(num_words, smoothing, dtype, monkeypatch):
    from dragoman.model.fused import loss as fused_loss

    monkeypatch.setattr(fused_loss, "LOSS_CHUNK_TOKENS", 16)  # several chunks, the last one smaller
    num_tokens, width = 41, 32
    h = random_tensor(num_tokens, width, dtype=dtype).requires_grad_()
    weight = weight_of(random_tensor(num_words, width, seed=1), dtype)
    labels = torch.randint(num_words, (num_tokens,), generator=torch.Generator().manual_seed(2)).to(DEVICE)
    weights = torch.ones(num_tokens, device=DEVICE)
    weights[-5:] = 0
    scale = torch.tensor([0.5], device=DEVICE)
    loss, sums = fused_loss.linear_cross_entropy(h, weight, labels.int(), weights, scale, smoothing)
    loss.backward()
    exact = [h.detach().double().requires_grad_(), weight.value.double().requires_grad_()]
    log_p = torch.log_softmax(exact[0] @ exact[1].T, dim=-1)
    nll = -log_p.gather(1, labels[:, None])[:, 0]
    reference = ((1 - smoothing) * nll - smoothing * log_p.mean(-1)) @ weights.double()
    (reference * 0.5).backward()
    assert_close(sums, torch.stack([reference, nll @ weights.double()]), dtype)
    assert loss == sums[0]
    assert_close(h.grad, exact[0].grad, dtype)
    assert_close(weight.gradient, exact[1].grad, dtype)
    assert not h.grad[-5:].any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_product(dtype):
    from dragoman.model.fused.weight import product

    x = random_tensor(40, 24, dtype=dtype).requires_grad_()
    weight, bias = weight_of(random_tensor(56, 24, seed=1), dtype), weight_of(random_tensor(56, seed=2), dtype)
    y = product(x, weight, bias)
    assert_close(y, x.double() @ weight.value.double().T + bias.value.double(), dtype)
    direction = random_tensor(40, 56, dtype=dtype, seed=3)
    weight.gradient.fill_(1.0)  # gradients gather: what is there stays
    y.backward(direction)
    leftover().finish()
    assert_close(weight.gradient - 1, direction.double().T @ x.double(), dtype)
    assert_close(x.grad, direction.double() @ weight.value.double(), dtype)


@pytest.mark.parametrize("method", ["adamw", "adam", "muon"])
@pytest.mark.parametrize(("decay", "max_norm"), [(0.0, 0.0), (0.1, 0.5)])
def test_adam_moves_as_torch_does_and_leaves_out_what_is_not_finite(method, decay, max_norm):
    config = OptimConfig(method=method, weight_decay=decay, max_norm=max_norm)
    flats = []
    for _ in range(2):
        torch.manual_seed(1)
        flats.append(FlatModel(torch.nn.Sequential(torch.nn.Linear(30, 70), torch.nn.Linear(70, 11)).to(DEVICE)))
    rounded = torch.zeros_like(flats[0].weights, dtype=torch.bfloat16)
    ours, torchs = Optimizer(flats[0], config, rounded), Optimizer(flats[1], config)
    for step in range(5):
        gradient = random_tensor(flats[0].weights.numel(), seed=step)
        if step == 2:
            gradient[3] = torch.nan
        before = flats[0].weights.clone()
        for flat, optimizer in zip(flats, (ours, torchs), strict=True):
            flat.gradient.copy_(gradient)
            norm = optimizer.update(0.01)
            assert not flat.gradient.any()
        assert torch.isnan(norm) == (step == 2)
        assert flats[0].weights.equal(before) == (step == 2)
    # On a GPU, Muon's directions are products of 16 bits, and a last bit that differs in the momentum is felt there.
    dtype = torch.bfloat16 if method == "muon" and DEVICE.type == "cuda" else torch.float32
    assert_close(flats[0].weights, flats[1].weights, dtype)
    assert_close(rounded, flats[0].weights, torch.bfloat16)
    for name, tensor in ours.tensors().items():
        other = torchs.tensors()[name]
        if other.any():
            assert_close(tensor, other, torch.float32)
        else:  # Muon has no second average
            assert not tensor.any(), name


def test_dropout_keeps_its_share_and_differs_between_sites_seeds_and_neighbours():
    masks = [hash_keeps(seed, site, 1 << 20, 0.1).double() for seed, site in ((1, 1), (1, 2), (2, 1), (1 << 40, 1))]
    for number, mask in enumerate(masks):
        assert mask.mean() == pytest.approx(0.9, abs=0.001)
        others = [other for i, other in enumerate(masks) if i != number]
        for other in (*others, mask.roll(1), mask.roll(512)):
            assert torch.corrcoef(torch.stack([mask, other]))[0, 1].abs() < 0.005
