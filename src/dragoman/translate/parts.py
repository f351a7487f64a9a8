"""A sentence as what an engine is given: whole, cut where it is too long, or around what must stay as it is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.data.placeholders import Restorations
from dragoman.data.vocab import Vocab
from dragoman.translate.alignment import Pair, shifted
from dragoman.translate.cutting import cut


@dataclass(frozen=True)
class Hypothesis:
    """One translation; the score is its log-probability per piece^length_penalty."""

    text: str
    score: float
    alignment: tuple[Pair, ...] | None = None  # pairs of words, where it was asked for


@dataclass(frozen=True)
class Part:
    """A stretch of a sentence. Without ids it is not translated but copied."""

    text: str
    glue: str  # what stands between it and the part before
    ids: list[int]
    restorations: Restorations


class Splitter:
    """Makes parts that a model can translate."""

    def __init__(self, vocab: Vocab, max_pieces: int, is_masking: bool) -> None:
        self._vocab = vocab
        self._max_pieces = max_pieces
        self._is_masking = is_masking

    def parts(self, line: str, hidden: Sequence[re.Pattern[str]] = (), literals: Sequence[str] = ()) -> list[Part]:
        """What the patterns find is hidden from the model by symbols; `literals` are not even shown to it."""
        line = " ".join(line.split())
        if not literals:
            return self._translated(line, "", hidden)
        longest_first = sorted(literals, key=len, reverse=True)
        pieces = re.split(f"({'|'.join(map(re.escape, longest_first))})", line)
        parts: list[Part] = []
        glue = ""
        for number, piece in enumerate(pieces):
            text = piece.strip()
            glue = " " if glue or piece[:1].isspace() else ""
            if text:
                parts += [Part(text, glue, [], {})] if number % 2 else self._translated(text, glue, hidden)
                glue = ""
            glue = " " if glue or piece[-1:].isspace() else ""
        return parts

    def _translated(self, text: str, glue: str, hidden: Sequence[re.Pattern[str]]) -> list[Part]:
        texts = cut(text, lambda part: len(self._encode(part, hidden)[0]) <= self._max_pieces)
        return [
            Part(each, glue if number == 0 else " ", *self._encode(each, hidden)) for number, each in enumerate(texts)
        ]

    def _encode(self, text: str, hidden: Sequence[re.Pattern[str]]) -> tuple[list[int], Restorations]:
        return self._vocab.encode_source(text, mask=self._is_masking, hidden=hidden)


def copied(part: Part, num_best: int, alignments: bool) -> list[Hypothesis]:
    """A part that stays as it is."""
    pairs = tuple((word, word) for word in range(len(part.text.split()))) if alignments else None
    return [Hypothesis(part.text, 0.0, pairs)] * num_best


def join(parts: Sequence[Part], best: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    """The n-th translations of all parts as the n-th of the sentence; the score is their sum."""
    if len(parts) == 1:
        return list(best[0])
    return [_join(parts, column) for column in zip(*best, strict=True)]


def _join(parts: Sequence[Part], hypotheses: Sequence[Hypothesis]) -> Hypothesis:
    source = target = ""
    pairs: list[Pair] = []
    for part, hypothesis in zip(parts, hypotheses, strict=True):
        if hypothesis.alignment is not None:
            pairs += shifted(hypothesis.alignment, (_next_word(source, part.glue), _next_word(target, part.glue)))
        source += (part.glue if source else "") + part.text
        target += (part.glue if target else "") + hypothesis.text
    is_aligned = all(hypothesis.alignment is not None for hypothesis in hypotheses)
    return Hypothesis(target, sum(each.score for each in hypotheses), tuple(sorted(set(pairs))) if is_aligned else None)


def _next_word(text: str, glue: str) -> int:
    """The number of the word that the next part begins with: without a space between it is still the last one."""
    return max(0, len(text.split()) - (0 if glue else 1))
