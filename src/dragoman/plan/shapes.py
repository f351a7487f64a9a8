"""The parameters of a model by name and shape, in the order in which they lie in memory. No torch.

The order decides which gradients can travel early: an exchange starts from the end of this list.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.config import ModelConfig

BUCKET_BYTES = 25_000_000  # of fp32 gradient that travel together; `dist.dense` cuts by it


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor of the model."""

    name: str
    shape: tuple[int, ...]
    ready_share: float  # of a backward pass, done when this gradient is complete

    @property
    def num_values(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Neighbouring gradients that travel together, and when the last of them is complete."""

    num_values: int
    ready_share: float


def parameters_of(config: ModelConfig, vocab_size: int) -> tuple[Parameter, ...]:
    """All parameters, as the model lists them: embedding, encoder and decoder, each with the norm at its end."""
    d, f = config.d_model, config.d_ffn
    # The output projection's gradient is made with the loss, before the backward pass.
    encoder_work = config.num_encoder_layers * (4 * d * d + 2 * d * f)
    decoder_work = config.num_decoder_layers * (8 * d * d + 2 * d * f)
    encoder_begins = decoder_work / (decoder_work + encoder_work)
    found = [Parameter("embedding.weight", (vocab_size, d), 1.0)]
    for layer in range(config.num_encoder_layers):
        share = encoder_begins + (1 - encoder_begins) * (1 - layer / config.num_encoder_layers)
        found += _layer(f"encoder.{layer}", ("self_attention",), config, share)
    found += _final_norm("encoder_norm", config, encoder_begins)
    for layer in range(config.num_decoder_layers):
        share = encoder_begins * (1 - layer / config.num_decoder_layers)
        found += _layer(f"decoder.{layer}", ("self_attention", "cross_attention"), config, share)
    found += _final_norm("decoder_norm", config, 0.0)
    return tuple(found)


def _final_norm(name: str, config: ModelConfig, share: float) -> list[Parameter]:
    if config.norm != "pre":
        return []
    return [Parameter(f"{name}.{part}", (config.d_model,), share) for part in ("weight", "bias")]


def _layer(name: str, attentions: Sequence[str], config: ModelConfig, share: float) -> Iterator[Parameter]:
    d, f = config.d_model, config.d_ffn
    for attention in attentions:
        products = {"qkv": 3 * d} if attention == "self_attention" else {"q": d, "kv": 2 * d}
        linears = {key: (width, d, config.attention_bias) for key, width in {**products, "out": d}.items()}
        yield from _sublayer(f"{name}.{attention}", linears, d, share)
    yield from _sublayer(f"{name}.feed_forward", {"up": (f, d, True), "down": (d, f, True)}, d, share)


def _sublayer(name: str, linears: dict[str, tuple[int, int, bool]], d: int, share: float) -> Iterator[Parameter]:
    for part in ("weight", "bias"):
        yield Parameter(f"{name}.norm.{part}", (d,), share)
    for key, (height, width, has_bias) in linears.items():
        yield Parameter(f"{name}.sublayer.{key}.weight", (height, width), share)
        if has_bias:
            yield Parameter(f"{name}.sublayer.{key}.bias", (height,), share)


def num_values(parameters: Sequence[Parameter]) -> int:
    return sum(parameter.num_values for parameter in parameters)


def buckets_of(parameters: Sequence[Parameter]) -> tuple[Bucket, ...]:
    """Whole parameters from the end of the list. Buckets leave in order, so a late one holds back those behind it."""
    buckets: list[Bucket] = []
    size, ready = 0, 0.0
    for number, parameter in reversed(list(enumerate(parameters))):
        size += parameter.num_values
        ready = max(ready, parameter.ready_share)
        if 4 * size >= BUCKET_BYTES or number == 0:
            buckets.append(Bucket(size, ready))
            size = 0
    return tuple(buckets)
