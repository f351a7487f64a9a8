"""Every method of exchange on threads as ranks: what it promises about sums, errors, replicas, bytes and state."""

import copy
from typing import get_args

import pytest
import torch
from torch import nn

from dragoman.config import SyncConfig
from dragoman.dist import dense
from dragoman.dist.diloco import DilocoSync
from dragoman.dist.methods import make_sync
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel
from dragoman.plan.payload import Precision
from thread_worlds import run_ranks

GRADIENT_METHODS = ("dense", "int8", "powersgd")


MODEL = nn.Sequential(nn.Linear(40, 30), nn.LayerNorm(30), nn.Linear(30, 20))


def small_flat() -> FlatModel:
    return FlatModel(copy.deepcopy(MODEL))


def random_like(flat: FlatModel, *seed: int) -> torch.Tensor:
    number = sum(part * 1000**place for place, part in enumerate(seed))
    return torch.randn(flat.weights.numel(), generator=torch.Generator().manual_seed(number))


def exchange_steps(world: World, config: SyncConfig, num_steps: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The exchanged gradients, and the sum of what all ranks brought."""
    flat = small_flat()
    sync = make_sync(config, world, flat)
    exchanged: list[torch.Tensor] = []
    for step in range(num_steps):
        flat.gradient.copy_(random_like(flat, 7, world.rank))  # the same at every step: errors must be made good
        flat.gradient += 0.1 * random_like(flat, step, world.rank)
        sync.exchange(1, world.size)
        exchanged.append(flat.gradient.clone())
    brought = sum(
        random_like(flat, 7, rank) + 0.1 * random_like(flat, step, rank)
        for rank in range(world.size)
        for step in range(num_steps)
    )
    assert isinstance(brought, torch.Tensor)
    return exchanged, brought


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    ("config", "error"),
    [
        (SyncConfig(method="dense"), 1e-6),
        (SyncConfig(method="dense", precision="bf16"), 0.005),
        (SyncConfig(method="dense", precision="fp16"), 0.001),
        (SyncConfig(method="int8"), 0.02),
        (SyncConfig(method="powersgd", dense_steps=5), 1e-6),
        (SyncConfig(method="powersgd", dense_steps=0, matrix_rank=64), 1e-6),  # no matrix is worth it: all travel whole
    ],
)
def test_ranks_end_with_the_same_sum(config, error, size):
    results = run_ranks(size, lambda world: exchange_steps(world, config, 1))
    for (first,), brought in results:
        assert first.equal(results[0][0][0])
        assert (first - brought).norm() <= error * brought.norm()


@pytest.mark.parametrize("config", [SyncConfig(method="int8"), SyncConfig(method="powersgd", dense_steps=0)])
def test_what_one_exchange_loses_later_ones_make_good(config):
    """Error feedback: over many steps the sum of all exchanges comes close to the sum of all gradients."""

    def loss_after(num_steps: int) -> float:
        exchanged, brought = run_ranks(2, lambda world: exchange_steps(world, config, num_steps))[0]
        return float((torch.stack(exchanged).sum(0) - brought).norm() / brought.norm())

    assert loss_after(40) < 0.5 * loss_after(1)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize("method", GRADIENT_METHODS)
def test_one_broken_gradient_spoils_one_step(method, broken):
    """It must be seen by all, so that all skip the step, and be forgotten by what is kept for the next."""

    def body(world: World) -> list[bool]:
        flat = small_flat()
        sync = make_sync(SyncConfig(method=method, dense_steps=0), world, flat)
        is_finite: list[bool] = []
        for step in range(4):
            flat.gradient.copy_(random_like(flat, step, world.rank))
            if step == 1 and world.rank == 1:
                flat.gradient[5] = broken
            sync.exchange(1, world.size)
            is_finite.append(bool(flat.gradient.isfinite().all()))
        return is_finite

    assert run_ranks(2, body) == [[True, False, True, True]] * 2


def test_thin_factors_send_less_than_everything():
    def sent(world: World, method: str) -> int:
        flat = small_flat()
        sync = make_sync(SyncConfig(method=method, dense_steps=0, matrix_rank=2), world, flat)  # type: ignore[arg-type]
        sync.exchange(1, world.size)
        return sync.sent_bytes

    dense, int8, powersgd = (run_ranks(2, lambda world, m=m: sent(world, m))[0] for m in GRADIENT_METHODS)
    assert int8 < 0.3 * dense
    assert powersgd < 0.3 * dense


@pytest.mark.parametrize("method", GRADIENT_METHODS)
def test_totals_arrive_at_once_where_gradients_are_exchanged(method):
    def body(world: World) -> list[list[float]]:
        sync = make_sync(SyncConfig(method=method), world, small_flat())
        return sync.advance(1, torch.tensor([1.0, world.rank], dtype=torch.float64)) + sync.settle() + sync.finish()

    assert run_ranks(2, body) == [[[2.0, 1.0]]] * 2


def test_dense_gradients_set_out_while_the_backward_pass_runs(monkeypatch):
    monkeypatch.setattr(dense, "BUCKET_BYTES", 2_000)  # one bucket per layer of the small model

    def body(world: World) -> tuple[int, torch.Tensor]:
        started: list[int] = []
        start_sum = world.start_sum
        monkeypatch.setattr(world, "start_sum", lambda tensor: (started.append(tensor.numel()), start_sum(tensor))[1])
        model = copy.deepcopy(MODEL)
        flat = FlatModel(model)
        sync = make_sync(SyncConfig(method="dense"), world, flat)
        inputs = torch.full((3, 40), 1.0 + world.rank)
        model(inputs).square().sum().backward()  # not the last: nothing may leave
        assert started == []
        sync.begin_last_backward()
        model(inputs).square().sum().backward()
        num_started = len(started)
        sync.exchange(1, 2)
        assert sum(started) == flat.gradient.numel()
        return num_started, flat.gradient

    (first_started, first), (second_started, second) = run_ranks(2, body)
    assert first_started == second_started > 1
    assert first.equal(second)


class Walk:
    """Diloco on weights that move by random steps of their own."""

    def __init__(self, world: World, **settings: object) -> None:
        values = {"method": "diloco", "every_steps": 4, "outer_rate": 1.0, "outer_momentum": 0.0}
        values |= {"precision": "fp32", **settings}
        self.flat = small_flat()
        self.world = world
        sync = make_sync(SyncConfig.model_validate(values), world, self.flat)
        assert isinstance(sync, DilocoSync)
        self.sync = sync
        self.sync.load_state({})
        self.arrived: list[list[float]] = []

    def go(self, *steps: int) -> "Walk":
        for step in steps:
            self.flat.weights += 0.01 * random_like(self.flat, step, self.world.rank)
            totals = torch.tensor([float(step), 1.0], dtype=torch.float64)
            self.arrived += self.sync.advance(step, totals)
        return self


def test_diloco_keeps_the_mean_of_the_replicas():
    """With an outer rate of 1 exchanges move nobody's mean, whatever the bits."""
    for precision in ("fp32", "int8", "sign"):
        walks = run_ranks(3, lambda world, p=precision: Walk(world, precision=p).go(*range(1, 20)))
        start = small_flat().weights
        moved = sum(random_like(walks[0].flat, step, rank) for step in range(1, 20) for rank in range(3))
        mean = torch.stack([walk.flat.weights for walk in walks]).mean(0)
        assert torch.allclose(mean, start + 0.01 * moved / 3, atol=1e-5)


@pytest.mark.parametrize(("precision", "apart"), [("fp32", 0.7), ("int8", 0.7), ("sign", 0.9)])
def test_diloco_keeps_replicas_together(precision, apart):
    def distance(walks: list[Walk]) -> float:
        return float((walks[0].flat.weights - walks[1].flat.weights).norm())

    steps = range(1, 41)
    together = run_ranks(2, lambda world: Walk(world, precision=precision, every_steps=4).go(*steps))
    alone = 0.01 * (2 * 40) ** 0.5 * small_flat().weights.numel() ** 0.5
    assert distance(together) < apart * alone
    finer = run_ranks(2, lambda world: Walk(world, precision=precision, every_steps=1).go(*steps))
    assert distance(finer) < distance(together)


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("precision", get_args(Precision))
def test_the_losses_arrive_behind_a_message_of_any_length(precision, num_ranks):
    """Fragments of every size: what stands behind them does not begin at a multiple of eight bytes."""
    walks = run_ranks(num_ranks, lambda world: Walk(world, precision=precision, every_steps=7).go(*range(1, 9)))
    for walk in walks:
        assert walk.arrived == [[num_ranks * step, num_ranks] for step in range(1, 8)]


def test_diloco_shares_the_same_weights_on_every_replica():
    walks = run_ranks(
        2, lambda world: Walk(world, precision="int8", outer_rate=1.4, outer_momentum=0.5).go(1, 2, 3, 4, 5)
    )
    shared = []
    for walk in walks:
        own = walk.flat.weights.clone()
        with walk.sync.shared_weights():
            shared.append(walk.flat.weights.clone())
        assert walk.flat.weights.equal(own)
    assert shared[0].equal(shared[1])
    assert not shared[0].equal(walks[0].flat.weights)


def test_the_outer_rate_stretches_the_mean_movement():
    def shift(world: World, rate: float) -> torch.Tensor:
        walk = Walk(world, every_steps=1, outer_rate=rate).go(1)
        before = walk.sync._shared.clone()
        walk.go(2)
        return walk.sync._shared - before

    plain, stretched = (run_ranks(2, lambda world, r=rate: shift(world, r))[0] for rate in (1.0, 1.5))
    assert torch.allclose(stretched, 1.5 * plain, atol=1e-6)


def test_the_outer_step_is_that_of_nesterov():
    walk = run_ranks(1, lambda world: Walk(world, outer_rate=0.8, outer_momentum=0.3))[0]
    whole = slice(0, walk.flat.weights.numel())
    shared, moved = torch.zeros_like(walk.flat.weights), torch.zeros_like(walk.flat.weights)
    reference = torch.optim.SGD([shared], lr=0.8, momentum=0.3, nesterov=True)
    for step in range(4):
        mean = random_like(walk.flat, step)
        shared.grad = -mean
        reference.step()
        moved += walk.sync._outer_step(whole, mean)
        assert torch.allclose(moved, shared, atol=1e-6)


def test_replicas_learn_faster_by_the_root_of_their_number():
    assert run_ranks(4, lambda world: Walk(world).sync.rate_factor) == [2.0] * 4
    assert run_ranks(4, lambda world: Walk(world, inner_rate=1.1).sync.rate_factor) == [1.1] * 4


def test_diloco_tells_totals_late_and_all_in_the_end():
    walk = run_ranks(2, lambda world: Walk(world, delay_steps=2).go(1, 2, 3, 4))[0]
    assert walk.arrived == [[2.0, 2.0], [4.0, 2.0]]

    def finished(world: World) -> list[list[float]]:
        late = Walk(world, delay_steps=2).go(1, 2, 3, 4)
        return late.arrived + late.sync.settle() + late.sync.finish()

    assert run_ranks(2, finished)[0] == [[2.0 * step, 2.0] for step in (1, 2, 3, 4)]


def test_diloco_ends_with_the_exact_mean():
    def body(world: World) -> tuple[torch.Tensor, torch.Tensor]:
        walk = Walk(world, precision="sign").go(*range(1, 8))
        walk.sync.finish()
        return walk.flat.weights, walk.sync._shared

    (first, first_shared), (second, second_shared) = run_ranks(2, body)
    assert first.equal(second)
    assert first.equal(first_shared)
    assert second.equal(second_shared)


@pytest.mark.parametrize("precision", get_args(Precision))
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_replica_whose_weights_are_no_numbers_takes_the_shared_ones(precision, broken):
    """And nobody else ever sees them."""

    def body(world: World) -> tuple[torch.Tensor, torch.Tensor]:
        walk = Walk(world, precision=precision, outer_momentum=0.9).go(1, 2, 3)
        if world.rank == 1:
            walk.flat.weights[::7] = broken
        walk.go(4, 5)
        others = walk.flat.weights.clone()
        walk.go(6, 7, 8)
        walk.sync.finish()
        return others, walk.flat.weights

    (sound, first), (_, second) = run_ranks(2, body)
    assert sound.isfinite().all()
    assert first.isfinite().all()
    assert first.equal(second)


@pytest.mark.parametrize("num_before", [0, 7])
@pytest.mark.parametrize("settings", [{}, {"precision": "int8", "outer_momentum": 0.9}, {"delay_steps": 3}])
def test_diloco_goes_on_from_its_state_bit_for_bit(settings, num_before):
    def whole(world: World) -> torch.Tensor:
        walk = Walk(world, **settings).go(1, 2, 3, 4, 5)
        walk.sync.settle()
        return walk.go(6, 7, 8, 9).flat.weights

    def resumed(world: World) -> torch.Tensor:
        before = Walk(world, **settings).go(1, 2, 3, 4, 5)
        before.sync.settle()
        state = before.sync.state()
        after = Walk(world, **settings).go(*range(1, 1 + num_before))  # a run that is rolled back has gone on
        after.sync.settle()
        with before.sync.shared_weights():
            after.flat.weights.copy_(before.flat.weights)
        after.sync.load_state(state)
        return after.go(6, 7, 8, 9).flat.weights

    for ours, theirs in zip(run_ranks(2, whole), run_ranks(2, resumed), strict=True):
        assert ours.equal(theirs)


@pytest.mark.parametrize("method", ["int8", "powersgd"])
def test_error_feedback_goes_on_from_its_state(method):
    config = SyncConfig(method=method, dense_steps=0)

    def body(world: World, is_resumed: bool) -> torch.Tensor:
        flat = small_flat()
        sync = make_sync(config, world, flat)
        for step in range(6):
            if is_resumed and step == 3:
                state = {name: tensor.clone() for name, tensor in sync.state().items()}
                sync = make_sync(config, world, flat)
                sync.load_state(state)
            flat.gradient.copy_(random_like(flat, step, world.rank))
            sync.exchange(1, world.size)
        return flat.gradient

    whole, resumed = (run_ranks(2, lambda world, r=r: body(world, r)) for r in (False, True))
    assert whole[0].equal(resumed[0])


@pytest.mark.parametrize("method", ["int8", "powersgd"])
def test_from_no_state_error_feedback_begins_anew(method):
    def body(world: World, num_before: int) -> torch.Tensor:
        flat = small_flat()
        sync = make_sync(SyncConfig(method=method, dense_steps=2), world, flat)
        for step in range(num_before + 4):
            if step == num_before:
                sync.load_state({})
            flat.gradient.copy_(random_like(flat, step - num_before, world.rank))
            sync.exchange(1, world.size)
        return flat.gradient

    fresh, rolled_back = (run_ranks(2, lambda world, n=n: body(world, n))[0] for n in (0, 5))
    assert rolled_back.equal(fresh)


def test_a_replica_takes_the_mean_over_its_own_tokens():
    def body(world: World) -> float:
        walk = Walk(world)
        walk.flat.gradient.fill_(1.0)
        walk.sync.exchange(100 * (world.rank + 1), 300)
        return walk.flat.gradient[0].item()

    assert run_ranks(2, body) == [3.0, 1.5]


def test_a_fragment_may_not_set_out_again_before_it_landed():
    with pytest.raises(ValueError, match="delay_steps 5 exceeds"):
        SyncConfig(method="diloco", every_steps=4, delay_steps=5)


@pytest.mark.parametrize("setting", [{"precision": "bf16"}, {"every_steps": 8}, {"delay_steps": 2}])
def test_what_auto_chooses_cannot_be_set_beside_it(setting):
    with pytest.raises(ValueError, match=f"sync.{next(iter(setting))} is chosen by sync.method auto"):
        SyncConfig(**setting)
    assert SyncConfig(method="diloco", **setting)


def test_gradients_have_no_sign_precision():
    with pytest.raises(ValueError, match="sign does not exist for"):
        SyncConfig(method="dense", precision="sign")
