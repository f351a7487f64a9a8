"""Where the pieces of a translation came from: the attention to the source when a known translation is fed again.

Shape letters: T target tokens, S source tokens, D width, H heads, E width of a head.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch

from dragoman.model.attention import Pairing
from dragoman.model.layout import Layout
from dragoman.model.transformer import DecoderLayer, Transformer


def alignment_layer(num_decoder_layers: int) -> int:
    """The layer whose attention is nearest to what people would align: the last but one (Garg et al. 2019)."""
    return max(0, num_decoder_layers - 2)


@torch.inference_mode()
def source_attention(
    model: Transformer, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], eos_id: int
) -> list[list[list[float]]]:
    """For every piece of each target, how much it looked at each piece of its source. Only sources end in EOS."""
    device = model.embedding.weight.device
    inputs = [[eos_id, *target[:-1]] for target in targets]
    source, target = (Layout(np.array([len(ids) for ids in side]), device) for side in (sources, inputs))
    source_ids_S, input_ids_T = (
        torch.tensor([i for ids in side for i in ids], device=device) for side in (sources, inputs)
    )
    memory_SD = model.encode(source_ids_S, source)
    x_TD = model.embed(input_ids_T, target.positions_T)
    among_target, to_source = Pairing(target, target, causal=True), Pairing(target, source, causal=False)
    number = alignment_layer(len(model.decoder))
    for layer in model.decoder[:number]:
        x_TD = layer(x_TD, memory_SD, among_target, to_source)
    q_THE, k_SHE = _queries_and_keys(model.decoder[number], x_TD, memory_SD, among_target)  # type: ignore[arg-type]
    return [
        _weights(q_THE[target.starts[i] : target.starts[i + 1]], k_SHE[source.starts[i] : source.starts[i + 1]])
        for i in range(len(sources))
    ]


def _queries_and_keys(
    layer: DecoderLayer, x_TD: torch.Tensor, memory_SD: torch.Tensor, among_target: Pairing
) -> tuple[torch.Tensor, torch.Tensor]:
    x_TD = layer.self_attention(x_TD, among_target)
    residual, attention = layer.cross_attention, layer.cross_attention.sublayer
    q_TD = attention.q(residual.enter(x_TD))  # type: ignore[operator]
    k_SD = attention.kv(memory_SD).chunk(2, dim=-1)[0]  # type: ignore[operator]
    heads = attention.num_heads
    return q_TD.view(len(q_TD), heads, -1), k_SD.reshape(len(k_SD), heads, -1)  # type: ignore[arg-type]


def _weights(q_THE: torch.Tensor, k_SHE: torch.Tensor) -> list[list[float]]:
    """The mean over the heads, without the column of the source's end."""
    scores_HTS = torch.einsum("the,she->hts", q_THE, k_SHE) / math.sqrt(q_THE.shape[-1])
    return scores_HTS.float().softmax(-1).mean(0)[:, :-1].tolist()
