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
    weights_ptr, rounded_ptr, gradient_ptr, first_ptr, second_ptr, direction_ptr, kind_ptr, num_updates_ptr, norm_ptr,
    size, rate, beta1, rest1, beta2, rest2, epsilon, decay, max_norm, BLOCK: tl.constexpr, DECOUPLED: tl.constexpr,
    HAS_KINDS: tl.constexpr, HAS_DIRECTIONS: tl.constexpr, CLIPS: tl.constexpr,
):  # fmt: skip
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < size
    norm = tl.load(norm_ptr)
    if norm < float("inf"):  # neither infinite nor NaN
        num_updates = tl.load(num_updates_ptr)
        weights = tl.load(weights_ptr + places, mask=inside, other=0.0)
        gradient = tl.load(gradient_ptr + places, mask=inside, other=0.0)
        if CLIPS:
            gradient = gradient * tl.minimum(max_norm / (norm + 1e-6), 1.0)
        own = inside
        kind = 0
        if HAS_KINDS:
            kind = tl.load(kind_ptr + places, mask=inside, other=0)
            own = inside & (kind != 2)
            strength = tl.where(kind == 0, 0.0, decay)
            if DECOUPLED:
                weights = weights * (1 - rate * strength)
            else:
                gradient += strength * weights
        first = tl.load(first_ptr + places, mask=own, other=0.0)
        second = tl.load(second_ptr + places, mask=own, other=0.0)
        first = beta1 * first + rest1 * gradient
        second = beta2 * second + rest2 * gradient * gradient
        correction1 = 1 - tl.exp2(num_updates * tl.log2(beta1))
        correction2 = 1 - tl.exp2(num_updates * tl.log2(beta2))
        change = rate / correction1 * first / (tl.sqrt(second / correction2) + epsilon)
        if HAS_DIRECTIONS:
            direction = tl.load(direction_ptr + places, mask=inside & (kind == 2), other=0.0).to(tl.float32)
            change = tl.where(kind == 2, rate * direction, change)
        weights -= change
        tl.store(rounded_ptr + places, weights.to(rounded_ptr.dtype.element_ty), mask=inside)
        tl.store(weights_ptr + places, weights, mask=inside)
        tl.store(first_ptr + places, first, mask=own)
        tl.store(second_ptr + places, second, mask=own)
    tl.store(gradient_ptr + places, tl.zeros([BLOCK], dtype=tl.float32), mask=inside)


@triton.jit
def momentum_update(
    gradient_ptr, momentum_ptr, direction_ptr, kind_ptr, norm_ptr, size, momentum_share, rest_share, max_norm,
    BLOCK: tl.constexpr, CLIPS: tl.constexpr,
):  # fmt: skip
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    norm = tl.load(norm_ptr)
    own = tl.load(kind_ptr + places, mask=places < size, other=0) == 2
    if norm < float("inf"):
        gradient = tl.load(gradient_ptr + places, mask=own, other=0.0)
        if CLIPS:
            gradient = gradient * tl.minimum(max_norm / (norm + 1e-6), 1.0)
        momentum = tl.load(momentum_ptr + places, mask=own, other=0.0)
        momentum = momentum_share * momentum + rest_share * gradient
        tl.store(momentum_ptr + places, momentum, mask=own)
        # Nesterov: as if the momentum of the next step were known.
        direction = momentum_share * momentum + rest_share * gradient
        tl.store(direction_ptr + places, direction.to(direction_ptr.dtype.element_ty), mask=own)


def gather_momentum(
    flat: FlatModel,
    momentum: torch.Tensor,
    directions: torch.Tensor,
    kinds: torch.Tensor,
    norm: torch.Tensor,
    max_norm: float,
    share: float,
) -> None:
    """Muon's momentum, of which `share` stays at every update, and the directions that follow from it."""
    size = flat.weights.numel()
    momentum_update[(triton.cdiv(size, BLOCK),)](
        flat.gradient, momentum, directions, kinds, norm, size, share, 1 - share, max_norm, BLOCK=BLOCK,
        CLIPS=max_norm > 0, num_warps=NUM_WARPS,
    )  # fmt: skip


def update_weights(
    flat: FlatModel,
    rounded: torch.Tensor,
    averages: tuple[torch.Tensor, torch.Tensor],
    directions: torch.Tensor | None,
    kinds: torch.Tensor | None,
    num_updates: torch.Tensor,
    norm: torch.Tensor,
    rate: float,
    config: OptimConfig,
) -> None:
    """Adam's step number `num_updates`. `kinds`: 1 where a weight decays, 2 where it also follows `directions`."""
    size = flat.weights.numel()
    beta1, beta2 = config.betas
    adam_update[(triton.cdiv(size, BLOCK),)](
        flat.weights, rounded, flat.gradient, *averages, directions, kinds, num_updates, norm, size, rate, beta1,
        1 - beta1, beta2, 1 - beta2, config.epsilon, config.weight_decay, config.max_norm, BLOCK=BLOCK,
        DECOUPLED=config.method != "adam", HAS_KINDS=kinds is not None, HAS_DIRECTIONS=directions is not None,
        CLIPS=config.max_norm > 0, num_warps=NUM_WARPS,
    )  # fmt: skip
