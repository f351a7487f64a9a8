"""Markdown as sentences: code, front matter and the signs of its layout are left alone."""

import re

from dragoman.translate.documents.document import Document, DocumentBuilder
from dragoman.translate.documents.marks import Marks

_FENCE = re.compile(r"\s*(```+|~~~+)")
_LAYOUT = re.compile(r"\s*(?:(?:>|[-*+]|\d+[.)]|#{1,6}|\[[ xX]\])\s+)*")
_INLINE = re.compile(
    r"`+[^`]+`+"  # code
    r"|!?\[(?=[^\]]{0,500}\]\()"  # the beginning of a link or an image
    r"|\]\([^)\s]{0,2000}(?:\s+\"[^\"]{0,500}\")?\)"  # its end, with the address; bounds, or it takes the square
    r"|\*\*|__|~~|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"
)


def split_markdown(text: str, language: str) -> Document:
    builder = DocumentBuilder(language)
    fence = ""  # what would end the code that we are in
    for number, line in enumerate(text.splitlines(keepends=True)):
        match = _FENCE.match(line)
        if number == 0 and line.rstrip() == "---":
            fence = "---"  # front matter ends as it begins
        elif fence:
            fence = "" if line.strip().startswith(fence) else fence
        elif match:
            fence = match.group(1)
        else:
            _split_line(line, builder)
            continue
        builder.keep(line)
    return builder.build()


def _split_line(line: str, builder: DocumentBuilder) -> None:
    layout = _LAYOUT.match(line)
    start = layout.end() if layout else 0
    builder.keep(line[:start])
    cells = re.split(r"(\|)", line[start:]) if line.lstrip().startswith("|") else [line[start:]]
    for cell in cells:
        marks = Marks()
        hidden = _INLINE.sub(lambda match, marks=marks: marks.add(match.group()), cell)
        builder.translate(hidden, marks)
