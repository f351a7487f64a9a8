"""The likeliest words of every row in one pass over its logits, with their log-probabilities.

Shape letters: N rows, V vocabulary, W words wanted. A program runs along a row in blocks and keeps the highest logit of
every lane. The best W words lie in the W lanes whose highest are highest: only these are looked at again.
"""

import torch
import triton
import triton.language as tl

BLOCK, NUM_WARPS = 2_048, 4


@triton.jit(do_not_specialize=["beam"])
def best_words_forward(
    logits_ptr, open_ptr, step_ptr, eos_ptr, top_ptr, words_ptr, beam, V, W: tl.constexpr, LANES: tl.constexpr,
    DEPTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row a program. Rows of a sentence that is done get word 0, which costs nothing to look up, and no chance."""
    row = tl.program_id(0)
    top_ptr += row * W
    words_ptr += row * W
    if tl.load(open_ptr + row // beam) == 0:
        for i in range(W):
            tl.store(top_ptr + i, float("-inf"))
            tl.store(words_ptr + i, 0)
    else:
        logits_ptr += row.to(tl.int64) * V
        # A translation has at least one piece.
        forbidden = tl.where(tl.load(step_ptr) == 0, tl.load(eos_ptr).to(tl.int32), -1)
        lanes = tl.arange(0, BLOCK)
        # Finite, so that a lane without words (minus infinity) is no NaN.
        highest = tl.full([BLOCK], -3.0e38, dtype=tl.float32)
        total = tl.zeros([BLOCK], dtype=tl.float32)
        for first in range(0, V, BLOCK):
            columns = first + lanes
            x = tl.load(logits_ptr + columns, mask=columns < V, other=float("-inf"))
            x = tl.where(columns == forbidden, float("-inf"), x)
            ratio = tl.exp(-tl.abs(x - highest))
            total = tl.where(x <= highest, total + ratio, total * ratio + 1.0)
            highest = tl.maximum(highest, x)
        best = tl.max(highest, 0)
        normalizer = best + tl.log(tl.sum(total * tl.exp(highest - best), 0))
        places = tl.arange(0, LANES * DEPTH)
        columns = tl.zeros([LANES * DEPTH], dtype=tl.int32)
        for i in range(W):
            _, lane = tl.max(highest, 0, return_indices=True)
            columns = tl.where(places // DEPTH == i, lane + (places % DEPTH) * BLOCK, columns)
            highest = tl.where(lanes == lane, float("-inf"), highest)
        inside = (places // DEPTH < W) & (columns < V) & (columns != forbidden)
        x = tl.load(logits_ptr + columns, mask=inside, other=float("-inf"))
        for i in range(W):
            best, place = tl.max(x, 0, return_indices=True)
            word = tl.sum(tl.where(places == place, columns, 0), 0)
            log_p = best - normalizer
            tl.store(top_ptr + i, tl.where(log_p == log_p, log_p, float("-inf")))
            tl.store(words_ptr + i, tl.minimum(word, V - 1))  # a word, whatever NaN does to the order
            x = tl.where(places == place, float("-inf"), x)


def best_words(
    logits_NV: torch.Tensor, num_words: int, open_B: torch.Tensor, step_1: torch.Tensor, eos_1: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities, best first, and words, (N, W) each; at step 0 EOS does not exist."""
    num_rows, vocab_size = logits_NV.shape
    assert logits_NV.dtype == torch.float32 and logits_NV.is_contiguous()
    top_NW = torch.empty(num_rows, num_words, dtype=torch.float32, device=logits_NV.device)
    words_NW = torch.empty(num_rows, num_words, dtype=torch.int32, device=logits_NV.device)
    block = min(BLOCK, max(triton.next_power_of_2(vocab_size), triton.next_power_of_2(num_words)))
    depth = triton.next_power_of_2(triton.cdiv(vocab_size, block))
    best_words_forward[(num_rows,)](
        logits_NV, open_B, step_1, eos_1, top_NW, words_NW, num_rows // open_B.shape[0], vocab_size, W=num_words,
        LANES=triton.next_power_of_2(num_words), DEPTH=depth, BLOCK=block, num_warps=NUM_WARPS,
    )  # fmt: skip
    return top_NW, words_NW
