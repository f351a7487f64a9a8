"""The model of a recipe on a device, as training has it; `doctor` times the same one."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from dragoman.config import Recipe
from dragoman.model.flat import FlatModel
from dragoman.model.transformer import Transformer, initialize
from dragoman.model.weights import load_weights

Autocast = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Built:
    """In training mode; `flat` holds its weights and gradients."""

    model: Transformer
    flat: FlatModel
    precision: str
    autocast: Autocast  # around every forward pass


def build_model(recipe: Recipe, vocab_size: int, device: torch.device, init: Path | None = None) -> Built:
    """With the recipe's first weights, or those of a file."""
    precision = resolve_precision(recipe.train.precision, device)
    autocast = partial(torch.autocast, device.type, torch.bfloat16) if precision == "bf16" else nullcontext
    model = Transformer(recipe.model, vocab_size)
    initialize(model, recipe.train.seed)
    if init is not None:
        load_weights(model, init)
    model.to(device, torch.float64 if precision == "fp64" else torch.float32).train()
    return Built(model, FlatModel(model), precision, autocast)


def resolve_precision(wanted: str, device: torch.device) -> str:
    """`auto` is bf16 where the GPU has it and fp32 elsewhere."""
    if wanted != "auto":
        return wanted
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
