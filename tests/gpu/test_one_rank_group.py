"""Every exchange through a real process group of one rank, which is all that nccl allows on one GPU.

It shows that what we ask of the library exists, takes our types and devices, and gives back what was brought. gloo does
the same on the CPU, so that the test itself is tested everywhere.
"""

import copy

import pytest
import torch
import torch.distributed as dist
from torch import nn

from dragoman.config import SyncConfig
from dragoman.dist.methods import make_sync
from dragoman.dist.world import World
from dragoman.model.flat import FlatModel

MODEL = nn.Sequential(nn.Linear(40, 30), nn.LayerNorm(30), nn.Linear(30, 20))
# How far the weights may end from those of the exact sum, as a share of the way that they went.
METHODS = {
    "dense": (SyncConfig(method="dense"), 1e-6),
    "dense bf16": (SyncConfig(method="dense", precision="bf16"), 0.005),
    "dense fp16": (SyncConfig(method="dense", precision="fp16"), 0.001),
    "int8": (SyncConfig(method="int8"), 0.02),
    "powersgd": (SyncConfig(method="powersgd", dense_steps=1, matrix_rank=8), 0.5),
    "diloco": (SyncConfig(method="diloco", every_steps=3, outer_rate=1.0, outer_momentum=0.0), 1e-4),
}


class OneOfOne(World):
    """One rank that asks its group all the same."""

    @property
    def is_alone(self) -> bool:
        return False

    def within_host(self) -> World:
        return World(0, 1, 0, self.device)

    def between_hosts(self) -> World:
        return self


@pytest.fixture(params=["gloo", "nccl"])
def world(request):
    if request.param == "nccl" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA GPU")
    device = torch.device("cuda" if request.param == "nccl" else "cpu")
    dist.init_process_group(request.param, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield OneOfOne(0, 1, 0, device)
    finally:
        dist.destroy_process_group()


def test_collectives_give_back_what_was_brought(world):
    def some(dtype: torch.dtype) -> torch.Tensor:
        return torch.arange(12, device=world.device).to(dtype)

    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert world.sum(some(dtype)).equal(some(dtype))
    for dtype in (torch.uint8, torch.int64, torch.float32):
        (part,) = world.start_gather(some(dtype)).wait()
        assert part.equal(some(dtype)) and part.device == some(dtype).device
        assert world.swap(some(dtype)[None]).equal(some(dtype)[None])
        assert world.broadcast(some(dtype)).equal(some(dtype))
    assert world.gather({"text": "ü"}) == [{"text": "ü"}]
    assert world.any(True) and not world.any(False)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_as_without_a_group(world, name):
    config, error = METHODS[name]
    start = FlatModel(copy.deepcopy(MODEL)).weights
    alone, _ = train(World(0, 1, 0, world.device), SyncConfig(method="dense"))
    weights, arrived = train(world, config)
    assert (weights - alone).norm() <= error * (alone - start).norm()
    assert arrived == [[step, 16.0] for step in range(1, 7)]


def train(world: World, config: SyncConfig) -> tuple[torch.Tensor, list[list[float]]]:
    """A few steps of backward passes, gradients on their way while they run; the weights, and the losses that came."""
    model = copy.deepcopy(MODEL).to(world.device)
    flat = FlatModel(model)
    sync = make_sync(config, world, flat)
    sync.load_state({})
    arrived: list[list[float]] = []
    for step in range(1, 7):
        flat.zero()
        sync.begin_last_backward()
        text = torch.randn(16, 40, generator=torch.Generator().manual_seed(step)).to(world.device)
        model(text).square().mean().backward()
        sync.exchange(16, 16)
        flat.weights -= 0.1 * flat.gradient
        arrived += sync.advance(step, torch.tensor([step, 16.0], dtype=torch.float64, device=world.device))
    arrived += sync.finish()
    return flat.weights.detach().cpu(), arrived
