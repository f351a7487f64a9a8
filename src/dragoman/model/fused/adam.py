"""One update of all weights in one pass over the flat vectors: clip, move, round the copy, zero the gradient.

An update whose gradient is not finite is left out here, on the device; the host hears of it later.
"""

import torch
import triton
import triton.language as tl

from dragoman.config import OptimConfig
from dragoman.model.flat import FlatModel

BLOCK, NUM_WARPS = 1_024, 4


@triton.jit
def adam_update(
    weights_ptr, rounded_ptr, gradient_ptr, first_ptr, second_ptr, kind_ptr, num_updates_ptr, norm_ptr, size, rate,
    beta1, rest1, beta2, rest2, epsilon, decay, max_norm, BLOCK: tl.constexpr, DECOUPLED: tl.constexpr,
    HAS_KINDS: tl.constexpr, CLIPS: tl.constexpr,
):  # fmt: skip
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < size
    norm = tl.load(norm_ptr)
    if norm < float("inf"):  # neither infinite nor NaN
        num_updates = tl.load(num_updates_ptr)
        weights = tl.load(weights_ptr + places, mask=inside, other=0.0)
        gradient = tl.load(gradient_ptr + places, mask=inside, other=0.0)
        first = tl.load(first_ptr + places, mask=inside, other=0.0)
        second = tl.load(second_ptr + places, mask=inside, other=0.0)
        if CLIPS:
            gradient = gradient * tl.minimum(max_norm / (norm + 1e-6), 1.0)
        moves = inside
        if HAS_KINDS:
            kind = tl.load(kind_ptr + places, mask=inside, other=0)
            moves = inside & (kind != 2)
            strength = tl.where(kind == 1, decay, 0.0)
            if DECOUPLED:
                weights = weights * (1 - rate * strength)
            else:
                gradient += strength * weights
        first = beta1 * first + rest1 * gradient
        second = beta2 * second + rest2 * gradient * gradient
        correction1 = 1 - tl.exp2(num_updates * tl.log2(beta1))
        correction2 = 1 - tl.exp2(num_updates * tl.log2(beta2))
        change = rate / correction1 * first / (tl.sqrt(second / correction2) + epsilon)
        weights = tl.where(moves, weights - change, weights)
        tl.store(rounded_ptr + places, weights.to(rounded_ptr.dtype.element_ty), mask=inside)
        tl.store(weights_ptr + places, weights, mask=moves)
        tl.store(first_ptr + places, first, mask=moves)
        tl.store(second_ptr + places, second, mask=moves)
    tl.store(gradient_ptr + places, tl.zeros([BLOCK], dtype=tl.float32), mask=inside)


def update_weights(
    flat: FlatModel,
    rounded: torch.Tensor,
    averages: tuple[torch.Tensor, torch.Tensor],
    kinds: torch.Tensor | None,
    num_updates: torch.Tensor,
    norm: torch.Tensor,
    rate: float,
    config: OptimConfig,
) -> None:
    """Adam's step number `num_updates`. `kinds`: 1 where a weight decays, 2 where somebody else moves it."""
    size = flat.weights.numel()
    beta1, beta2 = config.betas
    adam_update[(triton.cdiv(size, BLOCK),)](
        flat.weights, rounded, flat.gradient, *averages, kinds, num_updates, norm, size, rate, beta1, 1 - beta1,
        beta2, 1 - beta2, config.epsilon, config.weight_decay, config.max_norm, BLOCK=BLOCK,
        DECOUPLED=config.method != "adam", HAS_KINDS=kinds is not None, CLIPS=config.max_norm > 0,
        num_warps=NUM_WARPS,
    )  # fmt: skip
