"""`example.py` of an export: a few lines that translate without Dragoman, wherever the folder lies."""

from dragoman.config import DecodeConfig
from dragoman.translate.export_folder import Format

CTRANSLATE2 = '''\
"""Translates the lines of its input. Needs: pip install ctranslate2 sentencepiece"""
import sys
from pathlib import Path

import ctranslate2
import sentencepiece

here = Path(__file__).resolve().parent
pieces = sentencepiece.SentencePieceProcessor(model_file=str(here / "vocab.model"))
translator = ctranslate2.Translator(str(here))
options = {{"beam_size": {beam}, "length_penalty": {length_penalty}, "max_decoding_length": {max_length}}}
for line in sys.stdin:
    tokens = pieces.encode(" ".join(line.split()), out_type=str)
    best = translator.translate_batch([tokens] if tokens else [], **options)
    print(pieces.decode(best[0].hypotheses[0]) if best else "", flush=True)
'''
HUGGINGFACE = '''\
"""Translates the lines of its input. Needs: pip install transformers torch"""
import sys
from pathlib import Path

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

here = Path(__file__).resolve().parent
tokenizer = AutoTokenizer.from_pretrained(here)
model = AutoModelForSeq2SeqLM.from_pretrained(here)
for line in sys.stdin:
    ids = model.generate(**tokenizer(line, return_tensors="pt")) if line.strip() else [[]]
    print(tokenizer.decode(ids[0], skip_special_tokens=True), flush=True)
'''


def example(format: Format, decode: DecodeConfig) -> str:
    """How it searches stands in the program, or in `generation_config.json`."""
    return CTRANSLATE2.format(**decode.model_dump()) if format == "ctranslate2" else HUGGINGFACE
