"""Checkpoint files before they are written, against files that were."""

import pytest
import tomli_w
import torch

from dragoman.config import Recipe
from dragoman.dist.methods import make_sync
from dragoman.model.flat import FlatModel
from dragoman.model.transformer import Transformer
from dragoman.model.weights import save_tensors
from dragoman.plan.checkpoint import (
    checkpoint_files,
    classic_bytes,
    disk_bytes,
    num_saves,
    optimizer_tensors,
    own_tensors,
    safetensors_bytes,
)
from dragoman.plan.machines import parse_machines
from dragoman.plan.setting import Setting, setting_of_machines, with_sync
from dragoman.plan.traffic import sync_of
from dragoman.recipe import load_recipe
from dragoman.train.optim import Optimizer
from dragoman.train.scale import LossScale
from small_runs import tiny_recipe
from thread_worlds import run_ranks


def setting_of(recipe: Recipe, machines: str = "2xcpu") -> Setting:
    return setting_of_machines(recipe, parse_machines(machines), 1e6)


def scale_of(recipe: Recipe) -> LossScale | None:
    return LossScale(torch.device("cpu")) if recipe.train.precision == "fp16" else None


@pytest.mark.parametrize("precision", ["auto", "fp16"])
def test_weights_and_optimizer_byte_for_byte(tmp_path, precision):
    recipe = tiny_recipe(f"train.precision={precision}")
    setting = setting_of(with_sync(setting_of(recipe), sync_of("dense")).recipe)
    model = Transformer(recipe.model, recipe.vocab.size)
    save_tensors(dict(model.state_dict()), tmp_path / "weights")
    optimizer = Optimizer(FlatModel(model), recipe.optim, scale=scale_of(recipe))
    save_tensors(optimizer.tensors(), tmp_path / "optimizer")
    files = checkpoint_files(setting)
    assert files["weights.safetensors"] == (tmp_path / "weights").stat().st_size
    assert files["optimizer.safetensors"] == (tmp_path / "optimizer").stat().st_size
    assert files["recipe.toml"] == len(tomli_w.dumps(setting.recipe.model_dump(exclude_none=True)).encode())
    assert files["optimizer.safetensors"] == safetensors_bytes(optimizer_tensors(setting.parameters, precision))
    assert "rank-000.safetensors" not in files


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("int8", {}),
        ("powersgd", {"matrix_rank": 2}),
        ("diloco", {"every_steps": 3}),
        ("diloco", {"every_steps": 4, "delay_steps": 3, "outer_momentum": 0.0}),
    ],
)
@pytest.mark.parametrize("precision", ["auto", "fp16"])
def test_what_a_rank_keeps_byte_for_byte(tmp_path, method, settings, precision):
    setting = with_sync(setting_of(tiny_recipe(f"train.precision={precision}")), sync_of(method, **settings))
    recipe, step = setting.recipe, 5

    def save(world) -> int:
        model = Transformer(recipe.model, recipe.vocab.size)
        flat = FlatModel(model)
        sync = make_sync(recipe.sync, world, flat)
        for number in range(1, step + 1):
            sync.exchange(1, 2)
            sync.advance(number, torch.zeros(5, dtype=torch.float64))
        sync.settle()
        own = sync.state()
        if sync.has_replicas:
            averages = Optimizer(flat, recipe.optim, scale=scale_of(recipe)).tensors()
            own |= {f"optimizer.{name}": tensor for name, tensor in averages.items()}
        path = tmp_path / f"rank-{world.rank}"
        save_tensors(own, path)
        return path.stat().st_size

    assert set(run_ranks(2, save)) == {safetensors_bytes(own_tensors(setting, step))}
    files = checkpoint_files(setting, step)
    assert files["rank-000.safetensors"] == safetensors_bytes(own_tensors(setting, step))
    assert ("optimizer.safetensors" in files) == (method != "diloco")


def test_the_classic_layout_is_852_megabytes_or_813_mebibytes():
    setting = setting_of(load_recipe("wmt14-en-de-classic"), "2x2:V100")
    parts = classic_bytes(setting.compute.middle.num_parameters)
    assert sum(parts.values()) == 852_332_544 == 14 * setting.compute.middle.num_parameters
    assert sum(parts.values()) / 2**20 == pytest.approx(813, abs=0.5)


def test_long_steps_are_saved_by_the_clock():
    setting = setting_of(load_recipe("base"))
    assert num_saves(setting, 0.1) == 100
    assert num_saves(setting, 30.0) == 5_000  # every 20 steps are 10 minutes


def test_disk_holds_the_newest_and_the_best():
    setting = setting_of(load_recipe("base"))
    few, many = (disk_bytes(setting, {"weights.safetensors": 10**9}, saves, 1, 1.0) for saves in (3, 100))
    assert many - few == 4 * 10**9
    averaged = setting_of(load_recipe("base", ["checkpoint.average_last=3"]))
    plain = setting_of(load_recipe("base", ["checkpoint.average_last=0"]))
    files = {"weights.safetensors": 10**9, "vocab.model": 10**6}
    sizes = [disk_bytes(setting, files, 1, 1, 1.0) for setting in (averaged, plain)]
    assert sizes[0] - sizes[1] == 10**9 + 10**6, "the average holds weights and vocabulary"


def test_nothing_is_under_way_after_the_last_step():
    setting = with_sync(setting_of(tiny_recipe()), sync_of("diloco"))
    names = [
        [tensor.name for tensor in own_tensors(setting, step) if tensor.name.startswith("flight")]
        for step in (setting.num_steps - 1, setting.num_steps)
    ]
    assert [len(found) for found in names] == [2, 0]
