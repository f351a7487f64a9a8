"""A SentencePiece vocabulary as `tokenizer.json`: the same ids, without SentencePiece. Needs `tokenizers`.

Knows BPE and Unigram. What they cannot say alike: a text that is one placeholder and nothing else.
"""

import json
import re
from pathlib import Path
from typing import Any

from dragoman.data.vocab import EOS_ID, SPACE, UNK_ID, Vocab, VocabRules
from dragoman.errors import DragomanError

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
# What Python's `split` takes for space; the regular expressions of `tokenizers` take other signs for it.
_SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_NEVER = -1_000.0  # a score that loses against any way to cut the text


def write_tokenizer(vocab: Vocab, folder: Path, max_length: int) -> None:
    """Both files by hand: what `save_pretrained` writes names classes that other versions lack."""
    folder.mkdir(parents=True, exist_ok=True)
    build_tokenizer(vocab).save(str(folder / "tokenizer.json"))
    bos, pad, eos, unk = SPECIALS
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": bos,
        "pad_token": pad,
        "eos_token": eos,
        "unk_token": unk,
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # `</s>` in a text is text
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def build_tokenizer(vocab: Vocab) -> Any:
    from tokenizers import AddedToken, Tokenizer, pre_tokenizers, processors

    rules = vocab.rules
    if rules.algorithm not in ("bpe", "unigram") or rules.is_suffix:
        kind = "with spaces behind words" if rules.is_suffix else f"of kind {rules.algorithm}"
        problem = f"{vocab.path} is a vocabulary {kind}, which a Hugging Face tokenizer cannot repeat"
        raise DragomanError(problem, "export it --to ctranslate2")
    tokenizer = Tokenizer(_bpe(vocab) if rules.algorithm == "bpe" else _unigram(vocab))
    tokenizer.normalizer = _normalizer(rules)
    if vocab.words_are_independent:
        tokenizer.pre_tokenizer = pre_tokenizers.Split(SPACE, "merged_with_next")  # words are cached
    tokenizer.decoder = _decoder(rules)
    end = (SPECIALS[EOS_ID], EOS_ID)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end[0]}", pair=f"$A {end[0]} $B {end[0]}", special_tokens=[end]
    )
    tokenizer.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece in SPECIALS])
    tokenizer.add_tokens([AddedToken(piece, normalized=True, special=False) for piece in rules.user_defined])
    return tokenizer


def _bpe(vocab: Vocab) -> Any:
    from tokenizers import models

    rules = vocab.rules
    ids = {piece: index for index, piece in enumerate(vocab.pieces)}
    return models.BPE(
        ids, merges(vocab.pieces, rules), unk_token=SPECIALS[UNK_ID], fuse_unk=True, byte_fallback=rules.has_bytes
    )


def merges(pieces: list[str], rules: VocabRules) -> list[tuple[str, str]]:
    """Every way to make a piece of two others, best piece first: SentencePiece joins the pair with the best result."""
    text = {piece: i for i, (piece, is_text) in enumerate(zip(pieces, rules.is_text, strict=True)) if is_text}
    found: list[tuple[float, int, int, str, str]] = []
    for piece, index in text.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in text and right in text:
                found.append((-rules.scores[index], text[left], text[right], left, right))
    return [(left, right) for *_, left, right in sorted(found)]


def _unigram(vocab: Vocab) -> Any:
    from tokenizers import models

    rules = vocab.rules
    entries = zip(vocab.pieces, rules.scores, rules.is_text, strict=True)
    # Bytes and symbols are in the table for their ids alone.
    scored = [(piece, score if is_text else _NEVER) for piece, score, is_text in entries]
    return models.Unigram(scored, UNK_ID, rules.has_bytes)


def _normalizer(rules: VocabRules) -> Any:
    """Spaces as `dragoman translate` has them, then as SentencePiece has them."""
    from tokenizers import Regex, normalizers

    steps: list[Any] = [normalizers.Replace(SPACE, "_")]
    if rules.characters_map:
        steps.append(normalizers.Precompiled(rules.characters_map))
    steps += [normalizers.Replace(Regex(f"[{_SPACES}]+"), " "), normalizers.Strip()]
    if rules.adds_prefix:
        steps.append(normalizers.Prepend(SPACE))
        if rules.user_defined:
            # These are looked for in normalised text, in their own normalised form, which must have no space in front.
            symbols = "|".join(map(re.escape, rules.user_defined))
            steps.append(normalizers.Replace(Regex(rf"\A{SPACE}(?=(?:{symbols})\z)"), ""))
    steps.append(normalizers.Replace(" ", SPACE))
    return normalizers.Sequence(steps)


def _decoder(rules: VocabRules) -> Any:
    from tokenizers import decoders

    steps: list[Any] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if rules.adds_prefix:
        steps.append(decoders.Strip(" ", 1, 0))
    return decoders.Sequence(steps)
