"""Optimizer and gradient: one flat buffer, so that zeroing, exchange and norm are one operation each."""

import torch
from torch import nn

from dragoman.config import OptimConfig


class FlatGradient:
    """All gradients of a model as views of one buffer."""

    def __init__(self, model: nn.Module) -> None:
        parameters = [p for p in model.parameters() if p.requires_grad]
        first = parameters[0]
        total = sum(p.numel() for p in parameters)
        self.buffer = torch.zeros(total, dtype=first.dtype, device=first.device)
        offset = 0
        for parameter in parameters:
            parameter.grad = self.buffer[offset : offset + parameter.numel()].view_as(parameter)
            offset += parameter.numel()

    def zero(self) -> None:
        self.buffer.zero_()

    def clip(self, max_norm: float) -> torch.Tensor:
        """Scale down to `max_norm` if longer (0: never); the norm before that."""
        norm = torch.linalg.vector_norm(self.buffer)
        if max_norm:
            self.buffer.mul_(torch.clamp(max_norm / (norm + 1e-6), max=1.0))
        return norm


def make_optimizer(model: nn.Module, config: OptimConfig) -> torch.optim.Optimizer:
    """Adam or AdamW over matrices (decayed) and the rest (not decayed)."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    kind = torch.optim.AdamW if config.method == "adamw" else torch.optim.Adam
    beta1, beta2 = config.betas
    return kind(groups, lr=0.0, betas=(beta1, beta2), eps=config.epsilon, fused=True)


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
    """The reverse: averages go where their parameter is, counts stay on the CPU or the device as torch wants."""
    for name, parameter in model.named_parameters():
        prefix = f"{name}."
        optimizer.state[parameter] = {
            key: tensors[prefix + key].to(parameter.device) for key in ("step", "exp_avg", "exp_avg_sq")
        }
