"""Training pairs to ids: placeholders put in, words encoded once and remembered.

Gives exactly the ids SentencePiece gives. Knows pairs and ids; files and corpora belong to others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data import placeholders
from dragoman.data.shuffle import Pairs, mix, uniform
from dragoman.data.vocab import EOS_ID, Vocab

Ids = NDArray[np.uint16]
Lengths = NDArray[np.int64]

# About 150 MB when full; Zipf's law refills what matters within a few thousand lines.
MAX_WORDS = 400_000
BATCH_LINES = 500
_EOS = np.array([EOS_ID], dtype="<u2").tobytes()
_SELECT_SALT, _CHOICE_SALT = 4, 5


class LineEncoder:
    """Lines -> ids with EOS, word by word where the vocabulary allows it, as whole lines where not.

    No piece of ours crosses a space, so that a line's ids are its words' ids in a row, and text repeats its words:
    a lookup costs a tenth of an encoding.
    """

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self._by_word = vocab.words_are_independent
        self._word_ids = {"\n": _EOS}
        self.piece_bytes = np.array(vocab.piece_bytes, dtype=np.int64)
        self.piece_bytes[EOS_ID] = 0

    def encode(self, lines: Sequence[str]) -> tuple[Ids, Lengths]:
        """All ids in a row and the length of each line, EOS included."""
        encode_batch = self._encode_words if self._by_word else self._encode_lines
        batches = [lines[start : start + BATCH_LINES] for start in range(0, len(lines), BATCH_LINES)]
        ids = np.frombuffer(b"".join(map(encode_batch, batches)), dtype="<u2")
        return ids, np.diff(np.flatnonzero(ids == EOS_ID), prepend=-1)

    def _encode_words(self, lines: Sequence[str]) -> bytes:
        """The line end is a word like any other, whose only id is EOS."""
        words = " \n ".join([*lines, ""]).split(" ")[:-1]
        self._learn_words(set(words))
        return b"".join(map(self._word_ids.__getitem__, words))

    def _encode_lines(self, lines: Sequence[str]) -> bytes:
        return _EOS.join([*_to_bytes(self._vocab.encode(lines)), b""])

    def _learn_words(self, words: set[str]) -> None:
        unknown = list(words.difference(self._word_ids))
        if len(self._word_ids) + len(unknown) > MAX_WORDS:
            self._word_ids = {"\n": _EOS}
            unknown = list(words - {"\n"})
        self._word_ids.update(zip(unknown, _to_bytes(self._vocab.encode(unknown)), strict=True))


@dataclass(frozen=True)
class MaskRates:
    """How placeholders are spread: found in a sample, the same for the whole corpus."""

    span_share: float  # pairs with a URL, e-mail or tag on both sides
    word_probability: float  # of masking a pair that has shared words and no such span


def measure_mask_rates(pairs: Pairs, placeholder_share: float) -> MaskRates | None:
    """The probability that brings about `placeholder_share` of all pairs to carry a symbol; None: no symbols at all."""
    if not len(pairs) or placeholder_share == 0:
        return None
    lines = list(zip(pairs.sources, pairs.targets, strict=True))
    num_spans = sum(placeholders.mask_shared_spans(*pair).num_spans > 0 for pair in lines)
    num_words = sum(bool(placeholders.shared_words(*pair)) for pair in lines)
    span_share, word_share = num_spans / len(pairs), num_words / len(pairs)
    missing = max(0.0, placeholder_share - span_share)
    # At most half: a model that never saw a plain number could not translate one.
    return MaskRates(span_share, min(0.5, missing / word_share) if word_share else 0.0)


def put_placeholders(pairs: Pairs, rates: MaskRates | None) -> NDArray[np.bool_]:
    """Put symbols into the pairs' lines, in place, and mark the pairs that carry one."""
    is_masked = np.zeros(len(pairs), dtype=bool)
    if rates is None:
        return is_masked
    for index, line in enumerate(pairs.sources):
        if placeholders.may_hold_span(line):
            is_masked[index] = _store(pairs, index, placeholders.mask_shared_spans(line, pairs.targets[index]))
    choices = mix(pairs.keys, _CHOICE_SALT)
    is_chosen = (uniform(pairs.keys, _SELECT_SALT) < rates.word_probability) & ~is_masked
    for index in np.flatnonzero(is_chosen).tolist():
        source, target = pairs.sources[index], pairs.targets[index]
        if words := placeholders.shared_words(source, target):
            masked = placeholders.mask_words(source, target, words, int(choices[index]))
            is_masked[index] = _store(pairs, index, masked)
    return is_masked


def _store(pairs: Pairs, index: int, masked: placeholders.MaskedPair) -> bool:
    pairs.sources[index], pairs.targets[index] = masked.source, masked.target
    return masked.num_spans > 0


def _to_bytes(rows: Sequence[Sequence[int]]) -> list[bytes]:
    lengths = [len(row) for row in rows]
    flat = np.fromiter((piece for row in rows for piece in row), dtype="<u2", count=sum(lengths)).tobytes()
    ends = np.cumsum([0, *lengths]) * 2
    return [flat[start:end] for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


def line_sums(values: NDArray[Any], lengths: Lengths) -> NDArray[np.int64]:
    """Sum of the values of each line."""
    sums = np.concatenate(([0], np.cumsum(values)))
    ends = np.cumsum(lengths)
    return sums[ends] - sums[ends - lengths]
