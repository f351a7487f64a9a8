"""Label-smoothed cross entropy from the last hidden states: logits of a chunk in the precision of the products, turned
into their own gradient where they lie. Shape letters: T tokens, C tokens of a chunk, D width, V vocabulary.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from dragoman.model.fused.weight import Weight, add_product
from dragoman.model.size import LOSS_CHUNK_TOKENS

BLOCK, NUM_WARPS = 4_096, 8


@triton.jit
def loss_rows(
    logits_ptr, labels_ptr, weights_ptr, scale_ptr, loss_ptr, nll_ptr, stride, V, smoothing,
    BLOCK: tl.constexpr, GRADIENT: tl.constexpr,
):  # fmt: skip
    """One token a program: its losses, and its logits' gradient in their place."""
    row = tl.program_id(0)
    weight = tl.load(weights_ptr + row)
    label = tl.load(labels_ptr + row)
    logits_ptr += row.to(tl.int64) * stride
    columns = tl.arange(0, BLOCK)
    best = float("-inf")
    total = 0.0
    plain = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, V, BLOCK):
        inside = first + columns < V
        x = tl.load(logits_ptr + first + columns, mask=inside, other=float("-inf")).to(tl.float32)
        new_best = tl.maximum(best, tl.max(x, 0))
        total = total * tl.exp(best - new_best) + tl.sum(tl.exp(x - new_best), 0)
        best = new_best
        plain += tl.where(inside, x, 0.0)
    normalizer = best + tl.log(total)
    nll = normalizer - tl.load(logits_ptr + label).to(tl.float32)
    smooth = normalizer - tl.sum(plain, 0) / V
    tl.store(nll_ptr + row, nll * weight)
    tl.store(loss_ptr + row, ((1 - smoothing) * nll + smoothing * smooth) * weight)
    if GRADIENT:
        tl.debug_barrier()  # the label's logit is read before it is overwritten
        factor = weight * tl.load(scale_ptr)
        for first in range(0, V, BLOCK):
            inside = first + columns < V
            x = tl.load(logits_ptr + first + columns, mask=inside, other=float("-inf")).to(tl.float32)
            p = tl.exp(x - normalizer) - smoothing / V
            p = tl.where(first + columns == label, p - (1 - smoothing), p)
            tl.store(logits_ptr + first + columns, (p * factor).to(logits_ptr.dtype.element_ty), mask=inside)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h_TD: torch.Tensor,
        weight: Weight,
        labels_T: torch.Tensor,
        weights_T: torch.Tensor,
        scale: torch.Tensor,
        smoothing: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_tokens, vocab_size = h_TD.shape[0], weight.value.shape[0]
        needs_grad = ctx.needs_input_grad[0]
        dh_TD = torch.empty_like(h_TD) if needs_grad else None
        losses_2T = torch.empty(2, num_tokens, dtype=torch.float32, device=h_TD.device)
        chunk = triton.cdiv(num_tokens, triton.cdiv(num_tokens, LOSS_CHUNK_TOKENS))
        for first in range(0, num_tokens, chunk):
            rows = slice(first, min(first + chunk, num_tokens))
            logits_CV = h_TD[rows] @ weight.value.T
            loss_rows[(logits_CV.shape[0],)](
                logits_CV, labels_T[rows], weights_T[rows], scale, losses_2T[0, rows], losses_2T[1, rows],
                logits_CV.stride(0), vocab_size, smoothing, BLOCK=min(BLOCK, triton.next_power_of_2(vocab_size)),
                GRADIENT=needs_grad, num_warps=NUM_WARPS,
            )  # fmt: skip
            if dh_TD is not None:
                torch.mm(logits_CV, weight.value, out=dh_TD[rows])
                add_product(weight.gradient, logits_CV.T, h_TD[rows])
        ctx.dh_TD = dh_TD
        sums = losses_2T.sum(1)
        ctx.mark_non_differentiable(sums)
        return sums[0].clone(), sums

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return ctx.dh_TD, None, None, None, None, None


def linear_cross_entropy(
    h_TD: torch.Tensor,
    weight: Weight,
    labels_T: torch.Tensor,
    weights_T: torch.Tensor,
    scale: torch.Tensor,
    smoothing: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, [loss, nll]), sums over the tokens that weigh something.

    All gradients are made here, times `scale` (one number on the device), and the weight's own is added at once: call
    `backward` on the loss itself, once.
    """
    return _LinearCrossEntropy.apply(h_TD, weight, labels_T, weights_T, scale, smoothing)  # type: ignore[no-any-return]
