"""Weights as files: safetensors only, so that a model from a stranger can be opened without running its code."""

from collections.abc import Sequence
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
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DragomanError(f"{path} cannot be read: {error}", "use another checkpoint") from None


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
    for path in paths:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118  (not a dictionary)
                tensor = file.get_tensor(name).double()
                total[name] = tensor if name not in total else total[name].add_(tensor)
    dtypes = {name: tensor.dtype for name, tensor in load_tensors(paths[0]).items()}
    return {name: (tensor / len(paths)).to(dtypes[name]) for name, tensor in total.items()}
