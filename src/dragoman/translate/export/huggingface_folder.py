"""A model as the folder that `transformers` opens unmodified: weights, settings of `generate`, tokenizer."""

from pathlib import Path
from typing import Any

from dragoman.config import DecodeConfig
from dragoman.data.vocab import BOS_ID, EOS_ID, PAD_ID, Vocab
from dragoman.model.transformer import Transformer
from dragoman.translate.export.huggingface import to_huggingface
from dragoman.translate.export.tokenizer import write_tokenizer


def write_huggingface(
    model: Transformer, vocab: Vocab, decode: DecodeConfig, folder: Path, quantization: str = "float32"
) -> None:
    stock = to_huggingface(model)
    if quantization == "float16":
        stock = stock.half()
    stock.generation_config = generation_config(decode, model.config.max_positions)
    stock.save_pretrained(folder)
    write_tokenizer(vocab, folder, model.config.max_positions)


def generation_config(decode: DecodeConfig, max_positions: int) -> Any:
    """Makes `generate` search as we do, but that it counts the end of a sentence in its length."""
    from transformers import GenerationConfig

    return GenerationConfig(
        num_beams=decode.beam,
        length_penalty=decode.length_penalty,
        max_new_tokens=min(decode.max_length, max_positions),
        min_new_tokens=1,  # a translation has at least one piece
        renormalize_logits=True,
        early_stopping=True,  # as many finished ones as the beam is wide
        bos_token_id=BOS_ID,
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=EOS_ID,
    )


def load_tokenizer(folder: Path) -> Any:
    """As a user would."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)
