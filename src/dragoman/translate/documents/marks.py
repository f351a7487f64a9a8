"""Inline markup hidden behind marks: `<x1>`, which a translator keeps as it keeps any tag, and its return."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

_MARK = re.compile(r"<x\d+>")
_MARKS = re.compile(r"(<x\d+>)")
_EDGE = re.compile(r"((?:\s|<x\d+>)*)(.*?)((?:\s|<x\d+>)*)", re.DOTALL)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)[^<>]*>")
EMPHASIS = ("**", "__", "~~", "*", "_")  # of Markdown: the same at both ends
CLAUSE_ENDS = ".,;:!?"
VOID = {"img", "wbr", "br", "input"}


class Side(NamedTuple):
    """What stands beside a mark: the space, and the sign beyond it."""

    gap: str
    sign: str


@dataclass
class Marks:
    """The marks of one stretch of text. `restore` undoes what was done to the text between them."""

    originals: dict[str, str] = field(default_factory=dict)
    restore: Callable[[str], str] = str
    neighbours: dict[str, tuple[Side, Side]] = field(default_factory=dict)  # of every mark, before and behind it

    def add(self, markup: str) -> str:
        """The mark that stands for it from now on."""
        mark = f"<x{len(self.originals) + 1}>"
        self.originals[mark] = markup
        return mark

    def trimmed(self, text: str) -> tuple[str, str, str]:
        """What stands before the first word, the words, and what stands behind them; the outer two without marks."""
        match = _EDGE.fullmatch(text)
        assert match is not None
        before, middle, after = match.groups()
        return self.removed(before), middle, self.removed(after)

    def left_out(self, text: str) -> str:
        return _MARK.sub("", text) if self.originals else text

    def removed(self, text: str) -> str:
        """The markup itself at the places of its marks, and everything else as it stood in the document."""
        if not self.originals:
            return self.restore(text)
        parts = _MARKS.split(text)
        return "".join(self.originals.get(part, "") if n % 2 else self.restore(part) for n, part in enumerate(parts))

    def spaced(self, text: str) -> str:
        """With a space between marks and words: a word that touches a symbol is copied like it, not translated."""
        for match in _MARK.finditer(text):
            before, after = text[: match.start()], text[match.end() :]
            self.neighbours[match.group()] = (_side(before, before.rstrip(), -1), _side(after, after.lstrip(), 0))
        parts = _MARKS.split(text)
        for place in range(1, len(parts), 2):
            parts[place - 1] += " " if parts[place - 1][-1:].isalnum() else ""
            parts[place + 1] = (" " if parts[place + 1][:1].isalnum() else "") + parts[place + 1]
        return "".join(parts)

    def restored(self, translation: str) -> str:
        """As `removed`, for a translation of what was spaced: marks touch again what they touched."""
        return self.removed(self._tight(self._nested(translation)) if self.originals else translation)

    def _tight(self, text: str) -> str:
        parts = _MARKS.split(text)
        for place in range(1, len(parts), 2):
            before, after = self.neighbours.get(parts[place], (Side(" ", ""), Side(" ", "")))
            parts[place - 1] = _joined(parts[place - 1], before, at_end=True)
            parts[place + 1] = _joined(parts[place + 1], after, at_end=False)
        return "".join(parts).strip()

    def _nested(self, text: str) -> str:
        """Tags that would close before they open, or across each other, go back to the order of the source."""
        found = _MARK.findall(text)
        if self._is_nested(found):
            return text
        in_order = iter(sorted(found, key=lambda mark: int(mark[2:-1])))
        return _MARK.sub(lambda _: next(in_order), text)

    def _is_nested(self, marks: list[str]) -> bool:
        stack: list[str] = []
        for mark in marks:
            name, is_end = self._pair(mark)
            if name and not is_end:
                stack.append(name)
            elif name and (not stack or stack.pop() != name):
                return False
        return not stack

    def _pair(self, mark: str) -> tuple[str, bool]:
        """What it is one end of, and whether it is the second; nothing where it stands for itself."""
        original = self.originals.get(mark, "")
        tag = _TAG.fullmatch(original)
        if tag is not None:
            name = tag.group(2).lower()
            return ("", False) if name in VOID else (name, bool(tag.group(1)))
        if original.endswith("[") or original.startswith("]("):
            return "[", original.startswith("](")
        if original in EMPHASIS:
            alike = [other for other, text in self.originals.items() if text == original]
            return original, alike.index(mark) % 2 == 1
        return "", False


def _side(text: str, trimmed: str, nearest: int) -> Side:
    gap = text[len(trimmed) :] if nearest else text[: len(text) - len(trimmed)]
    return Side(gap, trimmed[nearest] if trimmed else "")


def _joined(text: str, side: Side, at_end: bool) -> str:
    """The edge of a text at a mark, as in the source: apart or not. Where that was no word, a word stays apart."""
    trimmed = text.rstrip() if at_end else text.lstrip()
    edge = trimmed[-1:] if at_end else trimmed[:1]
    gap = side.gap
    if not gap and not side.sign.isalnum() and edge.isalnum() and trimmed != text:
        gap = " "
    if not at_end and edge and edge in CLAUSE_ENDS and side.sign not in CLAUSE_ENDS:
        gap = ""
    return trimmed + gap if at_end else gap + trimmed


def html_marks() -> Marks:
    return Marks(restore=lambda text: html.escape(text, quote=False))
