"""Cleaning: bytes to normalised lines, and named filters that say which pairs to drop.

Everything here is pure and works on a whole chunk at a time: per-line Python would cost more than encoding does.
"""

import importlib
import operator
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dragoman.config import DataConfig, FilterName
from dragoman.data import scripts
from dragoman.data.vocab import SPACE

Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]

# ASCII controls become spaces in one pass over the bytes; LF ends a line, NUL is refused before.
_CONTROLS = bytes(code for code in range(32) if code != 10) + b"\x7f"
_CONTROLS_TO_SPACES = bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS))
_WIDE_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_INVISIBLE = "\u200b\u2060\ufeff\xad"


@dataclass(frozen=True)
class Side:
    """One side of a chunk, with what the filters ask about each line."""

    lines: list[str]
    num_chars: Counts
    num_words: Counts
    num_letters: Counts
    num_script_letters: Counts


@dataclass(frozen=True)
class Sides:
    """A chunk of pairs."""

    source: Side
    target: Side
    languages: tuple[str, str]


def normalize_text(text: str, form: Literal["nfc", "nfkc", "none"]) -> str:
    """Unicode form, plain single spaces, no control or invisible characters; line ends stay where they are.

    LF composes with nothing, so that a whole chunk may be normalised at once.
    """
    if not text.isascii():
        for character in _WIDE_SPACES:
            if character in text:
                text = text.replace(character, " ")
        for character in _INVISIBLE:
            if character in text:
                text = text.replace(character, "")
        # SentencePiece writes a space as this character: in the text it would come back as one.
        text = text.replace(SPACE, "_")
    if form != "none" and not unicodedata.is_normalized(form.upper(), text):  # type: ignore[arg-type]
        text = unicodedata.normalize(form.upper(), text)  # type: ignore[arg-type]
    while "  " in text:
        text = text.replace("  ", " ")
    return text.replace(" \n", "\n").replace("\n ", "\n").strip(" ")


def normalize_lines(lines: Sequence[str], form: Literal["nfc", "nfkc", "none"]) -> list[str]:
    """The same for single lines, such as sentences to translate."""
    joined = "\n".join(line.replace("\n", " ") for line in lines).encode(errors="replace")
    return normalize_text(joined.translate(_CONTROLS_TO_SPACES).decode(), form).split("\n")


def normalize_bytes(data: bytes, form: Literal["nfc", "nfkc", "none"]) -> str:
    """Valid UTF-8 whose every line ends in LF -> normalised text, lines separated by LF."""
    text = data.translate(_CONTROLS_TO_SPACES).decode()
    return normalize_text(text.removesuffix("\n"), form)


def measure(text: str, language: str) -> Side:
    """Count characters, words and letters of every line at once."""
    table = scripts.packed_table(scripts.script_of(language))
    codes = np.frombuffer(f"{text}\n".encode("utf-32-le"), dtype=np.uint32)
    ends = np.flatnonzero(codes == ord("\n"))
    num_chars = np.diff(ends, prepend=-1) - 1
    # A line counts with its newline, which adds nothing, so that no line is empty to `reduceat`.
    packed = np.add.reduceat(table.take(codes), ends - num_chars)
    return Side(
        lines=text.split("\n"),
        num_chars=num_chars,
        num_words=np.where(num_chars > 0, (packed >> scripts.SPACE_SHIFT) + 1, 0),
        num_letters=packed & scripts.FIELD_MASK,
        num_script_letters=(packed >> scripts.SCRIPT_SHIFT) & scripts.FIELD_MASK,
    )


def empty(pairs: Sides, config: DataConfig) -> Mask:
    least = max(1, config.min_words)
    return (pairs.source.num_words < least) | (pairs.target.num_words < least)


def too_long(pairs: Sides, config: DataConfig) -> Mask:
    return (pairs.source.num_words > config.max_words) | (pairs.target.num_words > config.max_words)


def length_ratio(pairs: Sides, config: DataConfig) -> Mask:
    source, target = pairs.source.num_chars, pairs.target.num_chars
    return np.maximum(source, target) > config.max_length_ratio * np.minimum(source, target)


def identical(pairs: Sides, config: DataConfig) -> Mask:
    equal = map(operator.eq, pairs.source.lines, pairs.target.lines)
    return np.fromiter(equal, dtype=bool, count=len(pairs.source.lines))


def non_letters(pairs: Sides, config: DataConfig) -> Mask:
    def too_few(side: Side) -> Mask:
        num_visible = side.num_chars - np.maximum(side.num_words - 1, 0)
        return side.num_letters < config.min_letters * num_visible

    return too_few(pairs.source) | too_few(pairs.target)


def wrong_script(pairs: Sides, config: DataConfig) -> Mask:
    def is_wrong(side: Side) -> Mask:
        return 2 * side.num_script_letters < side.num_letters

    return is_wrong(pairs.source) | is_wrong(pairs.target)


def wrong_language(pairs: Sides, config: DataConfig) -> Mask:
    """Drops a line only where the identifier is sure of another language: it errs on short lines."""
    identify = _language_identifier()

    def is_wrong(side: Side, language: str) -> Mask:
        answers = (identify(line) for line in side.lines)
        wrong = (found != language and probability > 0.9 for found, probability in answers)
        return np.fromiter(wrong, dtype=bool, count=len(side.lines))

    return is_wrong(pairs.source, pairs.languages[0]) | is_wrong(pairs.target, pairs.languages[1])


FILTERS: dict[FilterName, Callable[[Sides, DataConfig], Mask]] = {
    "empty": empty,
    "too_long": too_long,
    "length_ratio": length_ratio,
    "identical": identical,
    "non_letters": non_letters,
    "wrong_script": wrong_script,
    "wrong_language": wrong_language,
}


def reject(pairs: Sides, config: DataConfig) -> dict[str, Counts]:
    """Filter name -> indices of the pairs it drops; a pair is blamed on the first filter that drops it.

    A pair with an empty side teaches nothing and is dropped whatever filters are named.
    """
    names: list[FilterName] = ["empty", *(name for name in config.filters if name != "empty")]
    is_kept = np.ones(len(pairs.source.lines), dtype=bool)
    rejected: dict[str, Counts] = {}
    for name in names:
        settings = config if name in config.filters else config.model_copy(update={"min_words": 1})
        dropped = FILTERS[name](pairs, settings) & is_kept
        rejected[name] = np.flatnonzero(dropped)
        is_kept &= ~dropped
    return rejected


def invalid_lines(data: bytes) -> dict[int, str]:
    """Index of each line that is not clean UTF-8 -> what is wrong with it."""
    if b"\0" not in data and _is_utf8(data):
        return {}
    found: dict[int, str] = {}
    for index, line in enumerate(data.split(b"\n")):
        if b"\0" in line:
            found[index] = "has a NUL byte"
        elif not _is_utf8(line):
            found[index] = "is not valid UTF-8"
    return found


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@cache
def _language_identifier() -> Callable[[str], tuple[str, float]]:
    langid: Any = importlib.import_module("py3langid.langid")  # half a second: only where it is needed
    identifier: Any = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    return identifier.classify
