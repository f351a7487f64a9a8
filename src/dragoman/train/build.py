"""The model of a recipe on a device, as training has it; `doctor` times the same one."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dragoman.config import Recipe
from dragoman.model.flat import FlatModel
from dragoman.model.fused.support import fused_obstacle
from dragoman.model.transformer import Transformer, initialize
from dragoman.model.weights import load_weights

if TYPE_CHECKING:
    from dragoman.model.fused.transformer import FusedTransformer

Autocast = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Built:
    """In training mode; `flat` holds its weights and gradients."""

    model: Transformer
    flat: FlatModel
    precision: str
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


def build_model(recipe: Recipe, vocab_size: int, device: torch.device, init: Path | None = None) -> Built:
    """With the recipe's first weights, or those of a file."""
    precision = resolve_precision(recipe.train.precision, device)
    autocast = partial(torch.autocast, device.type, torch.bfloat16) if precision == "bf16" else nullcontext
    model = Transformer(recipe.model, vocab_size)
    initialize(model, recipe.train.seed)
    if init is not None:
        load_weights(model, init)
    model.to(device, torch.float64 if precision == "fp64" else torch.float32).train()
    flat = FlatModel(model)
    obstacle = find_obstacle(recipe, precision, device)
    return Built(model, flat, precision, autocast, None if obstacle else _fuse(model, flat), obstacle)


def find_obstacle(recipe: Recipe, precision: str, device: torch.device) -> str | None:
    """Why fused kernels do not compute; None where they do."""
    if recipe.train.kernels == "torch":
        return "train.kernels = torch"
    return fused_obstacle(recipe.model, precision, device)


def _fuse(model: Transformer, flat: FlatModel) -> "FusedTransformer":
    from dragoman.model.fused.transformer import FusedTransformer

    return FusedTransformer(model, flat, torch.bfloat16, stream=torch.bfloat16)


def resolve_precision(wanted: str, device: torch.device) -> str:
    """`auto` is bf16 where the GPU has it and fp32 elsewhere."""
    if wanted != "auto":
        return wanted
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
