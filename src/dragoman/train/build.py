"""The model of a recipe on a device, as training has it; `doctor` times the same one."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import torch

from dragoman.config import ModelConfig, Recipe
from dragoman.dist.world import World
from dragoman.errors import DragomanError
from dragoman.model.flat import FlatModel
from dragoman.model.fused.support import fused_obstacle
from dragoman.model.size import size_of
from dragoman.model.transformer import Transformer, initialize
from dragoman.model.weights import load_weights
from dragoman.train.scale import LossScale
from dragoman.units import format_bytes

if TYPE_CHECKING:
    from dragoman.model.fused.transformer import FusedTransformer

Autocast = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Built:
    """In training mode; `flat` holds its weights and gradients."""

    model: Transformer
    flat: FlatModel
    precision: str
    scale: LossScale | None  # of fp16 alone
    autocast: Autocast  # around every forward pass that is not fused
    fused: "FusedTransformer | None"  # the same model through fused kernels, where these run
    obstacle: str | None  # why they do not

    @property
    def kernels(self) -> str:
        """What computes, for the record."""
        if self.fused is not None:
            return "fused"
        return "torch" if self.flat.weights.device.type == "cpu" else f"torch ({self.obstacle})"

    @property
    def rounded(self) -> torch.Tensor | None:
        """The copy of the weights that fused passes read, which must follow every update."""
        return None if self.fused is None else self.fused.rounded


def build_model(
    recipe: Recipe,
    vocab_size: int,
    device: torch.device,
    init: Path | None = None,
    recomputes: bool = False,
    precision: str | None = None,
) -> Built:
    """With the recipe's first weights, or those of a file. Ranks agree on `precision`; one alone need not."""
    precision = precision or resolve_precision(recipe.train.precision, device)
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    autocast = nullcontext if half is None else partial(torch.autocast, device.type, half)
    if recipe.train.deterministic:
        make_deterministic()
    _refuse_giant(recipe.model, vocab_size)
    model = Transformer(recipe.model, vocab_size)
    model.recomputes = recomputes
    initialize(model, recipe.train.seed)
    if init is not None:
        load_weights(model, init)
    model.to(device, torch.float64 if precision == "fp64" else torch.float32).train()
    flat = FlatModel(model)
    obstacle = find_obstacle(recipe, precision, device)
    fused = None if obstacle else _fuse(model, flat, recipe.train.deterministic)
    scale = LossScale(device) if precision == "fp16" else None
    return Built(model, flat, precision, scale, autocast, fused, obstacle)


def _refuse_giant(config: ModelConfig, vocab_size: int) -> None:
    """A slip of the keyboard asks for terabytes: said before they are asked for."""
    table_bytes = 8 * config.max_positions * config.d_model
    needed, there = 4 * size_of(config, vocab_size).num_parameters + table_bytes, psutil.virtual_memory().total
    if needed > there:
        raise DragomanError(
            f"the weights alone would take {format_bytes(needed)}, and this machine has {format_bytes(there)}",
            "make the recipe's model smaller: model.d_model, model.d_ffn or the layers",
        )


def find_obstacle(recipe: Recipe, precision: str, device: torch.device) -> str | None:
    """Why fused kernels do not compute; None where they do."""
    if recipe.train.kernels == "torch":
        return "train.kernels = torch"
    return fused_obstacle(recipe.model, precision, device)


def _fuse(model: Transformer, flat: FlatModel, deterministic: bool) -> "FusedTransformer":
    from dragoman.model.fused.transformer import FusedTransformer

    return FusedTransformer(model, flat, torch.bfloat16, model.recomputes, deterministic)


def make_deterministic() -> None:
    """Ask torch for operations that give the same bits every time; it warns of those that cannot."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first product
    torch.use_deterministic_algorithms(True, warn_only=True)


def agree_on_precision(recipe: Recipe, world: World) -> str:
    """Its own for each rank, but fp16 for all where one has it: gradients are scaled there, and a sum must not mix."""
    own = resolve_precision(recipe.train.precision, world.device)
    return "fp16" if "fp16" in world.gather(own) else own


def resolve_precision(wanted: str, device: torch.device) -> str:
    """`auto` is bf16 where the GPU has it, fp16 on an older one, and fp32 on a CPU."""
    if wanted != "auto":
        return wanted
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
