"""The optimizer, and its averages as tensors for a file."""

import torch
from torch import nn

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel


def make_optimizer(flat: FlatModel, config: OptimConfig) -> torch.optim.Optimizer:
    """Adam or AdamW over matrices (decayed) and the rest (not decayed), its averages at zero."""
    matrices = [p for p in flat.parameters if p.dim() > 1]
    vectors = [p for p in flat.parameters if p.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    kind = torch.optim.AdamW if config.method == "adamw" else torch.optim.Adam
    beta1, beta2 = config.betas
    optimizer = kind(groups, lr=0.0, betas=(beta1, beta2), eps=config.epsilon, fused=True)
    for parameter in flat.parameters:
        optimizer.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return optimizer


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The optimizer's averages by parameter name, ready for a file."""
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state[parameter].items()
    }


def load_optimizer_tensors(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]
) -> None:
    """The reverse, into the tensors that are there."""
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            value.copy_(tensors[f"{name}.{key}"])
