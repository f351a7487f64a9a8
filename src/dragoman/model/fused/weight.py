"""A parameter as the fused path uses it, and the product with one.

Gradients are added in place to the flat fp32 vector by the kernels and products themselves: autograd carries
activations only, so that nothing of a weight's size is written twice.
"""

from dataclasses import dataclass
from typing import Any

import torch

from dragoman.model.fused.leftover import Leftover


@dataclass(frozen=True)
class Weight:
    """Three views of one shape: fp32 values, the same in the precision of the products, and the fp32 gradient, with
    where partial sums for it are left."""

    master: torch.Tensor
    value: torch.Tensor
    gradient: torch.Tensor
    leftover: Leftover

    def part(self, rows: slice) -> "Weight":
        return Weight(self.master[rows], self.value[rows], self.gradient[rows], self.leftover)


@dataclass(frozen=True)
class Norm:
    """Scale and shift of a layer norm."""

    scale: Weight
    shift: Weight


def add_product(gradient: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """gradient += left @ right, summed in fp32 whatever the factors are."""
    if left.dtype == gradient.dtype:
        gradient.addmm_(left, right)
    else:
        torch.addmm(gradient, left, right, out_dtype=gradient.dtype, out=gradient)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_TI: torch.Tensor, weight: Weight, bias: Weight | None) -> torch.Tensor:
        ctx.weight = weight
        ctx.save_for_backward(x_TI)
        w_IO = weight.value.T
        return x_TI @ w_IO if bias is None else torch.addmm(bias.value, x_TI, w_IO)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (x_TI,) = ctx.saved_tensors
        dy_TO = grad_outputs[0]
        add_product(ctx.weight.gradient, dy_TO.T, x_TI)
        return dy_TO @ ctx.weight.value, None, None


def product(x_TI: torch.Tensor, weight: Weight, bias: Weight | None = None) -> torch.Tensor:
    """x W^T, with the bias added; whoever makes the gradient of the result sums up the bias's own too."""
    return _Product.apply(x_TI, weight, bias)  # type: ignore[no-any-return]
