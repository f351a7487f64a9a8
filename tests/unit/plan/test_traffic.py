"""What travels, against the real methods: bytes counted by `dist`, buckets as `dist.dense` cuts them."""

import numpy as np
import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.dist import dense
from dragoman.dist.methods import make_sync
from dragoman.model.flat import FlatModel
from dragoman.model.layout import Layout
from dragoman.model.size import size_of
from dragoman.model.transformer import Transformer
from dragoman.plan.shapes import BUCKET_BYTES, Bucket, buckets_of, num_values, parameters_of
from dragoman.plan.traffic import Placement, dense_traffic, method_name, sync_of, traffic_of
from dragoman.recipe import load_recipe
from thread_worlds import run_ranks

SMALL = {"d_model": 32, "num_heads": 2, "d_ffn": 64, "num_encoder_layers": 2, "num_decoder_layers": 3}
TOTALS_BYTES = 5 * 8  # losses and votes that follow every step


def small(**changes) -> ModelConfig:
    return ModelConfig(**{**SMALL, **changes})


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("attention_bias", [True, False])
def test_parameters_are_those_of_the_model_in_its_order(norm, attention_bias):
    config = small(norm=norm, attention_bias=attention_bias)
    real = [(name, tuple(p.shape)) for name, p in Transformer(config, 301).named_parameters()]
    found = parameters_of(config, 301)
    assert [(p.name, p.shape) for p in found] == real
    assert num_values(found) == size_of(config, 301).num_parameters


def test_buckets_are_cut_as_the_exchange_cuts_them(monkeypatch):
    assert BUCKET_BYTES == dense.BUCKET_BYTES
    for limit in (1, 20_000, 10**9):
        monkeypatch.setattr(dense, "BUCKET_BYTES", limit)
        monkeypatch.setattr("dragoman.plan.shapes.BUCKET_BYTES", limit)
        real, _ = dense._cut(FlatModel(Transformer(small(), 301)))
        assert [bucket.num_values for bucket in buckets_of(parameters_of(small(), 301))] == [
            part.stop - part.start for part in real
        ]


def ready_order(config: ModelConfig) -> list[str]:
    """Parameters in the order in which a real backward pass completes them."""
    model = Transformer(config, 301)
    flat = FlatModel(model)
    names = [name for name, _ in model.named_parameters()]
    done: list[str] = []
    flat.when_ready(lambda number: done.append(names[number]))
    layout = Layout(np.array([4, 3]), torch.device("cpu"))
    ids = torch.arange(7) + 5
    model(ids, layout, ids, layout).sum().backward()
    return done


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_gradients_are_ready_in_the_order_of_their_shares(norm):
    config = small(norm=norm)
    shares = {p.name: p.ready_share for p in parameters_of(config, 301)}
    order = ready_order(config)
    assert set(order) == set(shares)
    seen = [shares[name] for name in order]
    # Sublayers of a layer share one figure, and the norm between the stacks comes with the decoder's last layer.
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize("settings", [{}, {"precision": "bf16"}, {"precision": "fp16"}])
@pytest.mark.parametrize("size", [2, 3])
def test_dense_sends_what_it_says(settings, size):
    check("dense", settings, size)


@pytest.mark.parametrize("size", [2, 3])
def test_int8_sends_what_it_says(size):
    check("int8", {}, size)


@pytest.mark.parametrize("rank", [1, 4])
def test_powersgd_sends_what_it_says(rank):
    check("powersgd", {"matrix_rank": rank, "dense_steps": 0}, 2)


@pytest.mark.parametrize("settings", [{}, {"every_steps": 16}, {"precision": "int8"}, {"precision": "fp32"}])
@pytest.mark.parametrize("size", [2, 3])
def test_diloco_sends_what_it_says(settings, size):
    check("diloco", settings, size)


def check(method: str, settings: dict, size: int) -> None:
    """One step of the real method among as many hosts, against the plan."""
    sync = sync_of(method, **settings)

    def step(world) -> int:
        flat = FlatModel(Transformer(small(), 301))
        flat.gradient.fill_(0.01)
        real = make_sync(sync, world, flat)
        before = real.sent_bytes
        real.exchange(1, size)
        real.advance(1, torch.zeros(5, dtype=torch.float64, device=world.device))
        real.settle()
        return real.sent_bytes - before

    planned = traffic_of(sync, parameters_of(small(), 301), Placement(size, size)).sent_bytes
    for sent in run_ranks(size, step):
        assert planned <= sent <= planned * 1.001 + 2 * size * TOTALS_BYTES


def test_one_rank_sends_nothing_and_one_host_lets_nothing_out():
    parameters = parameters_of(small(), 301)
    assert traffic_of(sync_of("dense"), parameters, Placement(1, 1)).messages == ()
    for method in ("dense", "int8", "powersgd", "diloco"):
        assert traffic_of(sync_of(method), parameters, Placement(1, 4)).sent_bytes == 0


def test_the_ring_of_the_classic_runs_is_365_megabytes():
    recipe = load_recipe("wmt14-en-de-classic")
    traffic = traffic_of(sync_of("dense"), parameters_of(recipe.model, 32_768), Placement(2, 4))
    assert traffic.sent_bytes == pytest.approx(365e6, rel=0.002)
    assert traffic.formula == "60.9 M gradients x 4 bytes x 2(4-1)/4 = 365 MB"


def test_pairs_of_ranks_share_the_port():
    """Four ranks on two hosts: each of two sends a quarter to two others, twice."""
    one = traffic_of(sync_of("int8"), parameters_of(small(), 301), Placement(2, 4))
    assert one.sent_bytes == 8 * (one.messages[0].sent_bytes // 4)
    ring = dense_traffic((Bucket(1_000, 0.0),), "fp32", Placement(2, 4))
    assert ring.sent_bytes == 6_000


def test_gradients_are_complete_in_the_order_in_which_buckets_leave():
    """No late parameter lies among early ones: it would hold back its bucket and all behind it."""
    base = load_recipe("base").model
    shares = [bucket.ready_share for bucket in buckets_of(parameters_of(base, 32_768))]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert shares[0] < 0.2
    post = base.model_copy(update={"norm": "post"})
    assert buckets_of(parameters_of(post, 32_768))[0].ready_share < 0.2


def test_names_of_methods():
    assert method_name(sync_of("dense")) == "dense fp32"
    assert method_name(sync_of("powersgd")) == "powersgd rank 4"
    assert method_name(sync_of("diloco")) == "diloco sign every 4"


def test_factors_that_save_nothing_are_not_made():
    """Width 32 at rank 16: two factors would be as large as the matrix."""
    parameters = parameters_of(small(), 301)
    thin = traffic_of(sync_of("powersgd", matrix_rank=16), parameters, Placement(2, 2))
    assert [message.sent_bytes for message in thin.messages] == [4 * num_values(parameters), 0]
