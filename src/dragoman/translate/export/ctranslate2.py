"""A model as a CTranslate2 folder with the same numbers."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dragoman.data.vocab import Vocab
from dragoman.model.alignment import alignment_layer
from dragoman.model.transformer import DecoderLayer, Transformer


def to_ctranslate2(model: Transformer, vocab: Vocab, folder: Path, quantization: str | None = None) -> None:
    """Write the model; `quantization` is one of CTranslate2's compute types, None keeps fp32."""
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation

    config = model.config
    activations = {"relu": Activation.RELU, "gelu": Activation.GELU, "swish": Activation.SWISH}
    spec = TransformerSpec.from_config(
        (config.num_encoder_layers, config.num_decoder_layers),
        config.num_heads,
        pre_norm=config.norm == "pre",
        activation=activations[config.activation],
        # As many heads as there are: CTranslate2 gives the mean over the first so many.
        alignment_layer=alignment_layer(config.num_decoder_layers),
        alignment_heads=config.num_heads,
    )
    for side in ("encoder", "decoder"):
        _set_side(getattr(spec, side), model, side)
    spec.decoder.projection.weight = _array(model.embedding.weight)
    for register in (spec.register_source_vocabulary, spec.register_target_vocabulary):
        register(vocab.pieces)
    settings: Any = spec.config
    settings.bos_token, settings.eos_token, settings.unk_token = "<s>", "</s>", "<unk>"
    settings.decoder_start_token = "</s>"
    settings.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _set_side(spec: Any, model: Transformer, side: str) -> None:
    embeddings = spec.embeddings[0] if side == "encoder" else spec.embeddings
    embeddings.weight = _array(model.embedding.weight)
    spec.scale_embeddings = math.sqrt(model.config.d_model)
    spec.position_encodings.encodings = _array(model.positions)  # type: ignore[arg-type]
    if model.config.norm == "pre":
        _set_norm(spec.layer_norm, getattr(model, f"{side}_norm"))
    for layer_spec, layer in zip(spec.layer, getattr(model, side), strict=True):
        _set_attention(layer_spec.self_attention, layer.self_attention)
        if isinstance(layer, DecoderLayer):
            _set_attention(layer_spec.attention, layer.cross_attention)
        _set_feed_forward(layer_spec.ffn, layer.feed_forward)


def _set_attention(spec: Any, residual: Any) -> None:
    """Both sides fuse the projections in the same order: q k v, or q and k v."""
    _set_norm(spec.layer_norm, residual.norm)
    for part, linear in zip(spec.linear, residual.sublayer.children(), strict=True):
        _set_linear(part, linear)


def _set_feed_forward(spec: Any, residual: Any) -> None:
    _set_norm(spec.layer_norm, residual.norm)
    _set_linear(spec.linear_0, residual.sublayer.up)
    _set_linear(spec.linear_1, residual.sublayer.down)


def _set_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _set_linear(spec: Any, linear: nn.Linear) -> None:
    spec.weight = _array(linear.weight)
    if linear.bias is not None:
        spec.bias = _array(linear.bias)


def _array(tensor: torch.Tensor) -> Any:
    """A copy: CTranslate2 quantizes in place, and the model is still needed."""
    return tensor.detach().float().cpu().numpy().copy()
