"""Measuring compute leaves no trace, and its figures are those of the recipe."""

import pytest
import torch

from dragoman.config import SyncConfig
from dragoman.data.batches import BatchPlan
from dragoman.data.shards import open_shards
from dragoman.dist.arithmetic import arithmetic_seconds
from dragoman.dist.world import World
from dragoman.plan.traffic import method_name
from dragoman.run.promise import ComputeProfile
from dragoman.train import profile
from dragoman.train.build import Built, build_model
from dragoman.train.optim import Optimizer
from dragoman.train.passes import TorchPasses
from dragoman.train.profile import measure_compute
from dragoman.train.synthetic import SyntheticShard
from small_runs import tiny_recipe
from thread_worlds import run_ranks

CPU = torch.device("cpu")


def made(shards=None) -> tuple[Built, BatchPlan]:
    recipe = tiny_recipe()
    built = build_model(recipe, recipe.vocab.size, CPU)
    return built, BatchPlan(shards or [SyntheticShard(recipe)], recipe.batch, 1)


def measured(world: World, methods: str = "none") -> ComputeProfile:
    built, plan = made()
    passes, optimizer = TorchPasses(built, tiny_recipe()), Optimizer(built.flat, tiny_recipe().optim)
    return measure_compute(world, tiny_recipe(), built, passes, optimizer, plan, methods=methods)


def test_weights_gradient_and_luck_stay_as_they_were(phrasebook_data):
    built, plan = made(open_shards(phrasebook_data).shards)
    flat = built.flat
    weights, luck = flat.weights.clone(), torch.get_rng_state()
    passes, optimizer = TorchPasses(built, tiny_recipe()), Optimizer(flat, tiny_recipe().optim)
    found = measure_compute(World(0, 1, 0, CPU), tiny_recipe(), built, passes, optimizer, plan)
    assert not any(tensor.any() for tensor in optimizer.tensors().values())
    assert torch.equal(flat.weights, weights)
    assert torch.equal(torch.get_rng_state(), luck)
    assert not flat.gradient.any()
    assert all(p.grad is not None and p.grad.data_ptr() for p in built.model.parameters())
    assert (found.num_parameters, found.vocab_size) == (flat.weights.numel(), tiny_recipe().vocab.size)


def test_the_figures_of_a_recipe():
    found = measured(World(0, 1, 0, CPU), methods="all")
    assert (found.num_microbatches, found.target_tokens, found.num_local_ranks) == (4, 400, 1)
    assert (found.device, found.precision, found.local_sum_seconds) == ("cpu", "fp32", 0.0)
    assert 0 < found.forward_seconds < 1 and 0 < found.backward_seconds < 1
    assert 0 < found.optimizer_seconds < 1
    assert found.peak_flops is not None and found.peak_flops > 1e9
    assert found.method_seconds.pop("dense fp32") == 0.0
    names = {"dense bf16", "int8", "powersgd rank 4", *(f"diloco sign every {every}" for every in (4, 16, 64))}
    assert found.method_seconds.keys() == names
    assert all(seconds > 0 for seconds in found.method_seconds.values())


def test_the_slowest_rank_counts(monkeypatch):
    def passes(world, *_):
        return 0.1 * (1 + world.rank), 0.2 * (1 + world.rank)

    monkeypatch.setattr(profile, "_pass_seconds", passes)
    found = run_ranks(2, measured)
    assert found[0] == found[1]
    assert (found[0].forward_seconds, found[0].backward_seconds) == (0.2, 0.4)
    assert not found[0].method_seconds


def test_of_all_passes_the_slowest_rank_and_no_outlier():
    steady, jumpy = [(1.0, 2.0)] * 6, [(0.5, 1.0)] * 5 + [(9.0, 9.0)]
    assert profile._usual([steady, jumpy]) == (1.0, 2.0)
    assert profile._usual([[], []]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("granted", "full_seconds", "share"), [(10, 0.1, 1), (10, 1.0, 1), (10, 4.0, 4), (10, 1000.0, 25), (5, 4.0, 8)]
)
def test_a_slow_device_is_timed_on_a_part(monkeypatch, granted, full_seconds, share):
    monkeypatch.setenv("DRAGOMAN_MEASURE_SECONDS", str(granted))
    assert profile._fitting_share(full_seconds, 25) == share


def test_a_part_of_a_microbatch_has_its_share_of_the_text():
    built, plan = made()
    passes = TorchPasses(built, tiny_recipe())
    pieces = [profile._pieces(plan, World(0, 1, 0, CPU), passes, share) for share in (1, 2)]
    tokens = [sum(len(piece.tensors.labels) for piece in each) for each in pieces]
    assert tokens[0] == pytest.approx(plan.step(1).target_tokens)
    assert plan.config.num_microbatches == 4, "the plan itself stays"
    assert tokens[1] < tokens[0]


def test_arithmetic_is_that_of_the_real_method():
    """Among peers that echo, a sum that should be doubled stays: only the time is of use."""
    flat = made()[0].flat
    flat.gradient.uniform_()
    sync = tiny_recipe("sync.method=int8").sync
    before = flat.gradient.clone()
    assert arithmetic_seconds(sync, World(0, 1, 0, CPU), 2, flat) > 0
    assert not torch.equal(flat.gradient, before), "it was encoded and decoded"


def test_synthetic_text_fits_the_recipe():
    recipe = tiny_recipe()
    shard = SyntheticShard(recipe)
    assert shard.lengths.max() <= recipe.batch.max_pieces + 1
    assert len(shard.source_ids) == shard.lengths[:, 0].sum()
    assert shard.source_ids.max() < recipe.vocab.size
    assert shard.lengths[:, 1].sum() > recipe.batch.target_tokens
    assert (shard.source_ids == SyntheticShard(recipe).source_ids).all()


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (SyncConfig(method="powersgd"), {"powersgd rank 4"}),
        (SyncConfig(), {"dense bf16", *(f"diloco sign every {every}" for every in (4, 16, 64))}),
    ],
)
def test_training_times_only_what_it_may_use(wanted, names):
    assert {method_name(config) for config in profile._methods(wanted, is_all=False)} == names
