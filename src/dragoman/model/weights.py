"""Weights as files: safetensors only, so that a model from a stranger can be opened without running its code."""

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from dragoman.errors import DragomanError


def save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Write tensors under their names."""
    save_file({name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}, path)


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read them back; a damaged file is the user's to mend."""
    with _told(path):
        return load_file(path)


@contextmanager
def _told(path: Path) -> Generator[None]:
    try:
        yield
    except (SafetensorError, OSError) as error:
        reason = " ".join(str(error).split())  # it quotes names, which may hold anything
        raise DragomanError(f"{path} cannot be read: {reason}", "use another checkpoint") from None


def check_size(path: Path, num_parameters: int) -> None:
    """Refuse weights that are fewer than the model's, by their header alone: before a model is made in memory."""
    with _told(path), safe_open(path, framework="pt") as file:
        held = sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    if held < num_parameters:
        raise DragomanError(
            f"{path} does not fit the model: it holds {held:,} parameters, not {num_parameters:,}",
            "use the recipe the weights were trained with",
        )


def load_weights(model: torch.nn.Module, path: Path) -> None:
    """Fill a model from a file whose names and shapes must match."""
    tensors = load_tensors(path)
    own = model.state_dict()
    for name, tensor in own.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            shape = list(tensors[name].shape) if name in tensors else "missing"
            raise DragomanError(
                f"{path} does not fit the model: {name} is {shape}, not {list(tensor.shape)}",
                "use the recipe the weights were trained with",
            )
    model.load_state_dict({name: tensors[name] for name in own})


def average_files(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    """The mean of several weight files, one in memory at a time."""
    total: dict[str, torch.Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    for path in paths:
        with _told(path), safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dictionary)
        _check_alike(tensors, total or tensors, path)
        for name, tensor in tensors.items():
            total[name] = total[name].add_(tensor) if name in total else tensor.double()
            dtypes.setdefault(name, tensor.dtype)
    return {name: (tensor / len(paths)).to(dtypes[name]) for name, tensor in total.items()}


def _check_alike(tensors: dict[str, torch.Tensor], others: dict[str, torch.Tensor], path: Path) -> None:
    shapes, expected = ({name: tensor.shape for name, tensor in side.items()} for side in (tensors, others))
    if shapes != expected:
        raise DragomanError(f"{path} has other tensors than the checkpoints before it", "use another checkpoint")
