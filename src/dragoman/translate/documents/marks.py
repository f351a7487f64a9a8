"""Inline markup hidden behind marks: `<x1>`, which a translator keeps as it keeps any tag, and its return."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

_MARK = re.compile(r"<x\d+>")
_EDGE = re.compile(r"((?:\s|<x\d+>)*)(.*?)((?:\s|<x\d+>)*)", re.DOTALL)
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)[^<>]*>")
VOID = {"img", "wbr", "br", "input"}


@dataclass
class Marks:
    """The marks of one stretch of text. `restore` undoes what was done to the text between them."""

    originals: dict[str, str] = field(default_factory=dict)
    restore: Callable[[str], str] = str

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
        text = self._tight(self._nested(text))
        parts = re.split(f"({_MARK.pattern})", text)
        return "".join(self.originals.get(part, "") if n % 2 else self.restore(part) for n, part in enumerate(parts))

    def _tight(self, text: str) -> str:
        """No space inside a pair of tags: a model that copies symbols puts spaces around them."""

        def tighten(match: re.Match[str]) -> str:
            before, mark, after = match.groups()
            tag = self._tag(mark)
            if tag is None:
                return match.group()
            return f"{mark}{after}" if tag.group(1) else f"{before}{mark}"

        return re.sub(r"(\s*)(<x\d+>)(\s*)", tighten, text)

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
            tag = self._tag(mark)
            if tag is None:
                continue
            name = tag.group(2).lower()
            if not tag.group(1):
                stack.append(name)
            elif not stack or stack.pop() != name:
                return False
        return not stack

    def _tag(self, mark: str) -> re.Match[str] | None:
        """The one tag that it stands for, if that has another end of its pair."""
        tag = _TAG.fullmatch(self.originals.get(mark, ""))
        return None if tag is None or tag.group(2).lower() in VOID else tag


def html_marks() -> Marks:
    return Marks(restore=lambda text: html.escape(text, quote=False))
