"""What a text is, plain or marked up, and how each kind becomes a document."""

from typing import Literal

from dragoman.translate.documents.document import Document, split_text
from dragoman.translate.documents.html import split_html
from dragoman.translate.documents.markdown import split_markdown

Format = Literal["text", "html", "markdown"]


def split_document(text: str, kind: Format, language: str) -> Document:
    """Any text, by its format."""
    if kind == "html":
        return split_html(text, language)
    if kind == "markdown":
        return split_markdown(text, language)
    return split_text(text, language)


def format_of(name: str) -> Format:
    """By the end of a file's name."""
    end = name.lower().rpartition(".")[2]
    return "html" if end in ("html", "htm", "xhtml") else "markdown" if end in ("md", "markdown") else "text"
