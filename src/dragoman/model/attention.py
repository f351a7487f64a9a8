"""Attention over packed sequences: a variable-length kernel on CUDA, padded groups elsewhere. Both give the same.

Shape letters: T query tokens, S key tokens, B sequences, L padded length, H heads, E width of a head.
There is no dropout on attention weights: torch's variable-length kernel has none.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import torch
import torch.nn.functional as F

from dragoman.model.layout import Grid, Layout, length_groups


@dataclass(frozen=True)
class Pairing:
    """Which queries see which keys: sequence i of one layout sees sequence i of the other."""

    queries: Layout
    keys: Layout
    causal: bool

    @cached_property
    def grids(self) -> list[tuple[Grid, Grid, torch.Tensor | None]]:
        """Padded rectangles of queries and keys with their mask, made once and used by every layer."""
        groups = length_groups(self.queries.lengths, self.keys.lengths)
        return [self._grid_pair(first, last) for first, last in groups]

    def _grid_pair(self, first: int, last: int) -> tuple[Grid, Grid, torch.Tensor | None]:
        queries = self.queries.grid(first, last)
        if self.causal:
            # Padding lies behind every real token, so the causal mask hides it too.
            return queries, queries, None
        keys = queries if self.keys is self.queries else self.keys.grid(first, last)
        return queries, keys, None if keys.valid_BL is None else keys.valid_BL[:, None, None, :]


def attend(q_THE: torch.Tensor, k_SHE: torch.Tensor, v_SHE: torch.Tensor, pairing: Pairing) -> torch.Tensor:
    """Scaled dot-product attention of every query token over its sequence's keys, as (T, H, E)."""
    if q_THE.is_cuda and q_THE.dtype in (torch.bfloat16, torch.float16) and _has_packed_kernel(q_THE.device):
        return _attend_packed(q_THE, k_SHE, v_SHE, pairing)
    return _attend_padded(q_THE, k_SHE, v_SHE, pairing)


@cache
def _has_packed_kernel(device: torch.device) -> bool:
    """Torch's variable-length kernel is FlashAttention's, which begins with Ampere."""
    return torch.cuda.get_device_capability(device) >= (8, 0)


def _attend_padded(q_THE: torch.Tensor, k_SHE: torch.Tensor, v_SHE: torch.Tensor, pairing: Pairing) -> torch.Tensor:
    outputs: list[torch.Tensor] = []
    for query_grid, key_grid, mask in pairing.grids:
        q_BHLE = query_grid.pad(q_THE).transpose(1, 2)
        k_BHLE = key_grid.pad(k_SHE).transpose(1, 2)
        v_BHLE = key_grid.pad(v_SHE).transpose(1, 2)
        o_BHLE = F.scaled_dot_product_attention(q_BHLE, k_BHLE, v_BHLE, attn_mask=mask, is_causal=pairing.causal)
        outputs.append(query_grid.unpad(o_BHLE.transpose(1, 2)))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def _attend_packed(q_THE: torch.Tensor, k_SHE: torch.Tensor, v_SHE: torch.Tensor, pairing: Pairing) -> torch.Tensor:
    queries, keys = pairing.queries, pairing.keys
    lengths = (queries.cumulative_B1, keys.cumulative_B1, queries.max_length, keys.max_length)
    if not torch.is_grad_enabled():
        # What `varlen_attn` calls, without its import of a compiler: seconds of a run's first evaluation.
        return torch.ops.aten._flash_attention_forward(
            q_THE, k_SHE, v_SHE, *lengths, 0.0, pairing.causal, return_debug_mask=False
        )[0]
    from torch.nn.attention.varlen import varlen_attn

    window = (-1, 0) if pairing.causal else (-1, -1)
    out_THE = varlen_attn(q_THE, k_SHE, v_SHE, *lengths, window_size=window)
    assert isinstance(out_THE, torch.Tensor)  # a pair only where the log-sum-exp is asked for
    return out_THE
