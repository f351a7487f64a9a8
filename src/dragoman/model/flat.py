"""A model's weights and gradients, each as one flat vector: zeroing, exchange and norm are one operation each.

Pure torch; knows no ranks.
"""

from collections.abc import Callable

import torch
from torch import nn


class FlatModel:
    """Every parameter of a model, and its gradient, as a view of one buffer."""

    def __init__(self, model: nn.Module) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        sizes = [p.numel() for p in self.parameters]
        self.starts = [sum(sizes[:i]) for i in range(len(sizes))]
        first = self.parameters[0]
        self.weights = torch.empty(sum(sizes), dtype=first.dtype, device=first.device)
        self.gradient = torch.zeros_like(self.weights)
        views = zip(self.parameters, self.views(self.weights), self.views(self.gradient), strict=True)
        for parameter, weights, gradient in views:
            weights.copy_(parameter.detach())
            parameter.data = weights
            parameter.grad = gradient

    def views(self, buffer: torch.Tensor) -> list[torch.Tensor]:
        """A vector of as many values as the model has, seen as its parameters."""
        shapes = [p.shape for p in self.parameters]
        return [buffer[i : i + shape.numel()].view(shape) for i, shape in zip(self.starts, shapes, strict=True)]

    def zero(self) -> None:
        self.gradient.zero_()

    def when_ready(self, call: Callable[[int], None]) -> None:
        """Call with a parameter's number whenever a backward pass has added to its gradient."""
        for number, parameter in enumerate(self.parameters):
            parameter.register_post_accumulate_grad_hook(lambda _, number=number: call(number))
