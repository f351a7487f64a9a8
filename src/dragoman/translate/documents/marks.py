"""Inline markup hidden behind marks: `<x1>`, which a translator keeps as it keeps any tag, and its return."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

_MARK = re.compile(r"<x\d+>")
_MARKS = re.compile(r"(<x\d+>)")
_EDGE = re.compile(r"((?:\s|<x\d+>)*)(.*?)((?:\s|<x\d+>)*)", re.DOTALL)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)[^<>]*>")
EMPHASIS = ("**", "__", "~~", "*", "_")  # of Markdown: the same at both ends
VOID = {"img", "wbr", "br", "input"}


@dataclass
class Marks:
    """The marks of one stretch of text. `restore` undoes what was done to the text between them."""

    originals: dict[str, str] = field(default_factory=dict)
    restore: Callable[[str], str] = str
    neighbours: dict[str, tuple[str, str]] = field(default_factory=dict)  # the signs on both sides of a mark

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
            self.neighbours[match.group()] = (text[: match.start()][-1:], text[match.end() :][:1])
        return re.sub(r"(?<=\w)(?=<x\d+>)|(?<=>)(?<=\d>)(?=\w)", " ", text) if self.neighbours else text

    def restored(self, translation: str) -> str:
        """As `removed`, for a translation of what was spaced: marks touch again what they touched."""
        return self.removed(self._tight(self._nested(translation)) if self.originals else translation)

    def _tight(self, text: str) -> str:
        parts = _MARKS.split(text)
        for place in range(1, len(parts), 2):
            before, after = self.neighbours.get(parts[place], (" ", " "))
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


def _joined(text: str, neighbour: str, at_end: bool) -> str:
    """The edge of a text at a mark, as in the source: apart or not. Where that was no word, a word stays apart."""
    trimmed = text.rstrip() if at_end else text.lstrip()
    edge = trimmed[-1:] if at_end else trimmed[:1]
    is_apart = neighbour.isspace() or (not neighbour.isalnum() and edge.isalnum() and trimmed != text)
    ends_clause = not at_end and edge and edge in ".,;:!?"
    space = " " if is_apart and not ends_clause else ""
    return trimmed + space if at_end else space + trimmed


def html_marks() -> Marks:
    return Marks(restore=lambda text: html.escape(text, quote=False))
