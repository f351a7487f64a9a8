"""Label-smoothed cross entropy from the last hidden states, without a logits tensor that outlives a chunk.

Shape letters: T tokens, C tokens of a chunk, D width, V vocabulary. The gradient of the output projection is computed
in the forward pass, while the chunk's probabilities are still in cache, so nothing of size T x V is kept.
"""

from typing import Any, NamedTuple

import torch

from dragoman.model.size import LOSS_CHUNK_ELEMENTS


class TokenLosses(NamedTuple):
    """Sums over the tokens of a microbatch; divide by the tokens of the whole step."""

    loss: torch.Tensor  # smoothed, differentiable
    nll: torch.Tensor  # plain negative log-likelihood


def _normalizer(
    logits_CV: torch.Tensor, p_CV: torch.Tensor, labels_C1: torch.Tensor, label_logits_C: torch.Tensor
) -> torch.Tensor:
    """log sum exp of every row. On the CPU it is read off the probabilities, which saves a pass over the chunk."""
    if logits_CV.is_cuda:
        return torch.logsumexp(logits_CV, dim=-1)
    normalizer_C = label_logits_C - p_CV.gather(1, labels_C1)[:, 0].log()
    underflowed = not torch.isfinite(normalizer_C).all()
    return torch.logsumexp(logits_CV, dim=-1) if underflowed else normalizer_C


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h_TD: torch.Tensor,
        w_VD: torch.Tensor,
        labels_T: torch.Tensor,
        smoothing: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        chunk = max(1, LOSS_CHUNK_ELEMENTS // w_VD.shape[0])
        needs_grad = ctx.needs_input_grad[0]
        mean_w_D = w_VD.mean(0)
        grad_h_TD = torch.empty_like(h_TD) if needs_grad else None
        grad_w_VD = torch.zeros_like(w_VD) if needs_grad else None
        nll_T = torch.empty(h_TD.shape[0], dtype=torch.promote_types(h_TD.dtype, torch.float32), device=h_TD.device)
        smooth_T = torch.empty_like(nll_T)
        for first in range(0, h_TD.shape[0], chunk):
            rows = slice(first, first + chunk)
            h_CD, labels_C1 = h_TD[rows], labels_T[rows, None]
            logits_CV = (h_CD @ w_VD.T).to(nll_T.dtype)
            p_CV = torch.softmax(logits_CV, dim=-1)
            label_logits_C = logits_CV.gather(1, labels_C1)[:, 0]
            normalizer_C = _normalizer(logits_CV, p_CV, labels_C1, label_logits_C)
            nll_T[rows] = normalizer_C - label_logits_C
            smooth_T[rows] = normalizer_C - (h_CD @ mean_w_D).to(nll_T.dtype)
            if grad_h_TD is not None and grad_w_VD is not None:
                p_CV.scatter_add_(1, labels_C1, p_CV.new_full(labels_C1.shape, smoothing - 1))
                grad_h_TD[rows] = p_CV @ w_VD
                grad_w_VD += p_CV.T @ h_CD
        if grad_h_TD is not None and grad_w_VD is not None:
            # The smoothing part is the same for every word of the vocabulary: one vector serves all rows.
            grad_h_TD -= smoothing * mean_w_D
            # Summed as a product: `sum` adds in another order, and runs would not repeat earlier ones to the last bit.
            grad_w_VD -= (smoothing / w_VD.shape[0]) * (h_TD.new_ones(h_TD.shape[0]) @ h_TD)
            ctx.save_for_backward(grad_h_TD, grad_w_VD)
        nll = nll_T.sum()
        loss = (1 - smoothing) * nll + smoothing * smooth_T.sum()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        grad_h_TD, grad_w_VD = ctx.saved_tensors
        grad_loss = grad_outputs[0]
        return grad_h_TD.mul_(grad_loss), grad_w_VD.mul_(grad_loss), None, None


def linear_cross_entropy(
    h_TD: torch.Tensor, w_VD: torch.Tensor, labels_T: torch.Tensor, smoothing: float
) -> TokenLosses:
    """Sum of the smoothed loss and of the plain one."""
    loss, nll = _LinearCrossEntropy.apply(h_TD, w_VD, labels_T, smoothing)  # type: ignore[misc]
    return TokenLosses(loss, nll)


def token_nll(h_TD: torch.Tensor, w_VD: torch.Tensor, labels_T: torch.Tensor) -> torch.Tensor:
    """Plain negative log-likelihood of every token, (T,), for validation."""
    chunk = max(1, LOSS_CHUNK_ELEMENTS // w_VD.shape[0])
    parts: list[torch.Tensor] = []
    for h_CD, labels_C in zip(h_TD.split(chunk), labels_T.split(chunk), strict=True):
        logits_CV = (h_CD @ w_VD.T).float() if h_TD.dtype != torch.float64 else h_CD @ w_VD.T
        parts.append(torch.logsumexp(logits_CV, dim=-1) - logits_CV.gather(1, labels_C[:, None])[:, 0])
    return torch.cat(parts)
