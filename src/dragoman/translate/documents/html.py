"""HTML as sentences: blocks are apart, inline tags travel with their sentence, code and scripts are left alone."""

import html
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import NamedTuple

from dragoman.translate.documents.document import Document, DocumentBuilder
from dragoman.translate.documents.marks import VOID, html_marks

# fmt: off
INLINE = frozenset((
    "a", "abbr", "b", "bdi", "bdo", "cite", "data", "del", "dfn", "em", "font", "i", "img", "ins", "mark", "q", "s",
    "small", "span", "strong", "sub", "sup", "time", "u", "wbr",
))
UNTOUCHED = frozenset((
    "code", "kbd", "math", "pre", "samp", "script", "style", "svg", "template", "textarea", "var",
))
# fmt: on


# Each of these makes the parser look through all that follows: a few are a slip, many are an attack.
_UNCLOSED = re.compile(r"<(?!!--)(?=[^<>]*(?:<|\Z))")
MAX_UNCLOSED = 50


class Token(NamedTuple):
    """Where something begins; it goes on to where the next one begins."""

    start: int
    kind: str  # text, start, end, other
    name: str
    is_untouched: bool = False  # it says itself that it is not to be translated


class _Tokenizer(HTMLParser):
    """Notes where tags and text begin, so that nothing has to be written anew."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=False)
        self._line_starts = [0]
        for line in source.split("\n"):
            self._line_starts.append(self._line_starts[-1] + len(line) + 1)
        self.tokens: list[Token] = []
        self.feed(_defused(source))
        self.close()
        self.tokens.append(Token(len(source), "other", ""))

    def _note(self, kind: str, name: str = "", is_untouched: bool = False) -> None:
        line, column = self.getpos()
        self.tokens.append(Token(self._line_starts[line - 1] + column, kind, name, is_untouched))

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """As browsers do: a comment up to the next `>`. Python's own way ends with an AssertionError."""
        return self.parse_bogus_comment(i, bool(report))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        classes = (values.get("class") or "").split()
        self._note("start", tag, values.get("translate") == "no" or "notranslate" in classes)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note("start" if tag in VOID else "other", tag)

    def handle_endtag(self, tag: str) -> None:
        self._note("end", tag)

    def handle_data(self, data: str) -> None:
        self._note("text")

    def handle_entityref(self, name: str) -> None:
        self._note("text")

    def handle_charref(self, name: str) -> None:
        self._note("text")

    def handle_comment(self, data: str) -> None:
        self._note("other")

    def handle_decl(self, decl: str) -> None:
        self._note("other")

    def handle_pi(self, data: str) -> None:
        self._note("other")

    def unknown_decl(self, data: str) -> None:
        self._note("other")


def _defused(source: str) -> str:
    """As long as before. A `<` that opens nothing becomes a space where there are many: the source itself is kept."""
    last_comment = source.rfind("-->") + 1
    if source.count("<!--", last_comment) > MAX_UNCLOSED:
        source = source[:last_comment] + source[last_comment:].replace("<!--", " !--")
    many = _UNCLOSED.subn(" ", source)
    return many[0] if many[1] > MAX_UNCLOSED else source


class _Stretch:
    """Running text between two blocks."""

    def __init__(self) -> None:
        self.text = ""
        self.marks = html_marks()

    def flush(self, builder: DocumentBuilder) -> None:
        if self.text:
            builder.translate(self.text, self.marks)
        self.text, self.marks = "", html_marks()


def split_html(text: str, language: str) -> Document:
    """Text between tags is translated; attributes are not."""
    builder, stretch = DocumentBuilder(language), _Stretch()
    untouched: list[str] = []  # elements, from the outermost, whose inside stays
    held = ""  # what was read of them so far
    for token, following in pairwise(_Tokenizer(text).tokens):
        raw = text[token.start : following.start]
        is_inside = bool(untouched)
        if is_inside:
            _leave_or_enter(token, untouched)
        elif token.kind == "start" and token.name not in VOID and (token.name in UNTOUCHED or token.is_untouched):
            untouched.append(token.name)
        if untouched:
            held += raw
        elif is_inside:
            # Inline code belongs to its sentence, but is not translated.
            stretch.text += stretch.marks.add(held + raw)
            held = ""
        elif token.kind == "text":
            stretch.text += html.unescape(raw)
        elif token.kind in ("start", "end") and token.name in INLINE:
            stretch.text += stretch.marks.add(raw)
        else:
            stretch.flush(builder)
            builder.keep(raw)
    stretch.flush(builder)
    builder.keep(held)
    return builder.build()


def _leave_or_enter(token: Token, untouched: list[str]) -> None:
    """Only elements of the same name are counted: what is inside may be anything."""
    if token.name != untouched[0]:
        return
    if token.kind == "start":
        untouched.append(token.name)
    elif token.kind == "end":
        untouched.pop()
