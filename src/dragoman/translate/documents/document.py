"""Text of any layout as sentences to translate and all that stands between them, which stays as it is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sentencex.sentencex import segment

from dragoman.translate.documents.marks import Marks

DEFAULT_LANGUAGE = "en"  # whose rules end a sentence where nobody said which language it is
_LINE_END = re.compile(r"(\r\n|[\n\r\x0b\x0c\x85\u2028\u2029])")
MAX_SEGMENTED = 4_000  # characters: the time to find sentences grows with the square of their number
_BULLET = re.compile(r"\s*(?:[-*•–]\s+)?")


@dataclass(frozen=True)
class Sentence:
    """What is translated; inline markup in it is hidden behind marks."""

    text: str
    marks: Marks = field(default_factory=Marks)


@dataclass(frozen=True)
class Document:
    """A frame with gaps: `frame[i]` stands before sentence i, the last of the frame behind them all."""

    frame: tuple[str, ...]
    sentences: tuple[Sentence, ...]

    def filled(self, translations: Sequence[str]) -> str:
        """The translations at the places of their sentences."""
        filled = [sentence.marks.restored(text) for sentence, text in zip(self.sentences, translations, strict=True)]
        pairs = zip(self.frame, [*filled, ""], strict=True)
        return "".join(part for pair in pairs for part in pair)


class DocumentBuilder:
    """Collects frame and sentences in the order of the text."""

    def __init__(self, language: str) -> None:
        self._language = language or DEFAULT_LANGUAGE
        self._frame: list[str] = [""]
        self._sentences: list[Sentence] = []

    def keep(self, text: str) -> None:
        """Text that stays as it is."""
        self._frame[-1] += text

    def translate(self, text: str, marks: Marks | None = None) -> None:
        """A stretch of running text, which may be several sentences; space around them stays."""
        marks = marks or Marks()
        for sentence in (each for window in _windows(text) for each in segment(self._language, window)):
            before, middle, after = marks.trimmed(sentence)
            if any(sign.isalpha() for sign in marks.left_out(middle)):
                self.keep(before)
                self._sentences.append(Sentence(marks.spaced(middle), marks))
                self._frame.append(after)
            else:  # numbers, rules, signs
                self.keep(marks.removed(sentence))

    def build(self) -> Document:
        return Document(tuple(self._frame), tuple(self._sentences))


def split_text(text: str, language: str) -> Document:
    """Plain text: a line is a line, whatever stands in it."""
    builder = DocumentBuilder(language)
    for line in _LINE_END.split(text):
        start = _bullet_end(line)
        builder.keep(line[:start])
        builder.translate(line[start:])
    return builder.build()


def _windows(text: str) -> Iterator[str]:
    """Very long stretches in parts, cut behind a sentence or at least behind a word."""
    while len(text) > MAX_SEGMENTED:
        ends = [text.rfind(sign, 0, MAX_SEGMENTED) + len(sign) for sign in (". ", "! ", "? ")]
        end = max(ends) if max(ends) > 2 else text.rfind(" ", 0, MAX_SEGMENTED) + 1
        yield text[: end or MAX_SEGMENTED]
        text = text[end or MAX_SEGMENTED :]
    yield text


def _bullet_end(line: str) -> int:
    match = _BULLET.match(line)
    return match.end() if match else 0
