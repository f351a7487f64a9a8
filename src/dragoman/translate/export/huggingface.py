"""A model as the stock Hugging Face class that computes exactly the same: M2M100 for pre-norm, Marian for post-norm.

Needs `transformers`, which is no dependency of training.
"""

from collections.abc import Iterator
from typing import Any

import torch

from dragoman.config import ModelConfig
from dragoman.data.vocab import BOS_ID, EOS_ID, PAD_ID
from dragoman.model.transformer import Transformer

# Our sublayer -> theirs, and the fused projections as their parts.
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PARTS = {"qkv": ("q_proj", "k_proj", "v_proj"), "kv": ("k_proj", "v_proj"), "q": ("q_proj",), "out": ("out_proj",)}
FEED_FORWARD = {"up": "fc1", "down": "fc2"}


def to_huggingface(model: Transformer) -> Any:
    """A `transformers` model with copied weights."""
    import transformers

    config, size = model.config, model.embedding.num_embeddings
    settings = _settings(config, size)
    if config.norm == "pre":
        stock = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**settings))
    else:
        stock = transformers.MarianMTModel(transformers.MarianConfig(**settings, share_encoder_decoder_embeddings=True))
    own = stock.state_dict()
    weights = dict(_weights(model, own))
    missing = {name for name in own if name not in weights and "embed_positions" not in name}
    assert missing <= {"final_logits_bias"}, missing
    stock.load_state_dict(weights, strict=False)
    return stock.eval()


def _settings(config: ModelConfig, vocab_size: int) -> dict[str, Any]:
    return {
        "vocab_size": vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.num_encoder_layers,
        "decoder_layers": config.num_decoder_layers,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.d_ffn,
        "decoder_ffn_dim": config.d_ffn,
        "max_position_embeddings": config.max_positions,
        "activation_function": {"relu": "relu", "gelu": "gelu", "swish": "silu"}[config.activation],
        "dropout": config.dropout,
        "activation_dropout": config.ffn_dropout,
        "attention_dropout": 0.0,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "scale_embedding": True,
        "bos_token_id": BOS_ID,
        "pad_token_id": PAD_ID,
        "eos_token_id": EOS_ID,
        "decoder_start_token_id": EOS_ID,
        "forced_eos_token_id": None,
        "tie_word_embeddings": True,
    }


def _weights(model: Transformer, own: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        yield f"{name}.weight", model.embedding.weight.detach()
    for side in ("encoder", "decoder"):
        norm = getattr(model, f"{side}_norm")
        for key, value in norm.state_dict().items():
            yield f"model.{side}.layer_norm.{key}", value
        for index, layer in enumerate(getattr(model, side)):
            yield from _layer_weights(layer, f"model.{side}.layers.{index}", own)


def _layer_weights(layer: Any, prefix: str, own: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    for kind, residual in layer.named_children():
        target = ATTENTIONS.get(kind)
        norm = "final_layer_norm" if target is None else f"{target}_layer_norm"
        for key, value in residual.norm.state_dict().items():
            yield f"{prefix}.{norm}.{key}", value
        for part, linear in residual.sublayer.named_children():
            names = (FEED_FORWARD[part],) if target is None else tuple(f"{target}.{name}" for name in PARTS[part])
            for key in ("weight", "bias"):
                value = getattr(linear, key)
                shapes = [own[f"{prefix}.{name}.{key}"] for name in names]
                values = (
                    value.detach().chunk(len(names)) if value is not None else [torch.zeros_like(s) for s in shapes]
                )
                yield from ((f"{prefix}.{name}.{key}", each) for name, each in zip(names, values, strict=True))
