"""Small random models whose translations are worth a search: they end here and there, and beams overtake others."""

import torch

from dragoman.config import ModelConfig
from dragoman.data.vocab import EOS_ID
from dragoman.model.transformer import Transformer, initialize

SEEDS = {"pre": 11, "post": 8}
SOURCES = [[5, 9, 4, EOS_ID], [7, EOS_ID], [6, 6, 8, 9, 4, 5, 7, EOS_ID], [EOS_ID], [4, 4, 9, 8, 5, EOS_ID]]


def lively_model(norm: str = "pre", vocab_size: int = 12, seed: int | None = None, **settings) -> Transformer:
    """Words are not likely to be repeated, unlike in a model whose weights are fresh: its last norm looks away."""
    sizes = {"d_model": 32, "num_heads": 2, "d_ffn": 48, "num_encoder_layers": 1, "num_decoder_layers": 2}
    config = ModelConfig(**{**sizes, "max_positions": 64, "norm": norm, **settings})
    model = Transformer(config, vocab_size)
    seed = SEEDS[norm] if seed is None else seed
    initialize(model, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("out.weight", "down.weight")):
                parameter.mul_(2)
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
        last = model.decoder_norm if norm == "pre" else model.decoder[-1].feed_forward.norm
        last.weight.mul_(-1)
    return model.eval()
