"""Placeholders: reserved symbols that stand for text to be copied, not translated (URLs, e-mails, tags, terms).

Before translation such spans become symbols, afterwards the symbols become the spans again. So that a model
learns to copy symbols, a small share of the training pairs carries them. Knows strings only, no vocabulary.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = ("url", "email", "tag", "term")
NUM_SLOTS = 4
SYMBOLS = tuple(f"⟦{kind}{slot}⟧" for kind in KINDS for slot in range(1, NUM_SLOTS + 1))

Restorations = dict[str, str]

SPAN = re.compile(
    r"(?P<term>⟦(?:url|email|tag|term)\d⟧)"  # a symbol in the text itself must survive as text
    r"|(?P<tag></?[A-Za-z][\w:-]*(?:\s[^<>]{0,500})?/?>|\{\w{0,40}\}|%\d*\$?[sd]\b)"
    r"|(?P<url>\b(?:https?://|ftp://|www\.)[^\s<>\"“”„«»⟦⟧]*[\w/=&#%+-])"
    r"|(?P<email>\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b)"
)
_SYMBOL = re.compile("|".join(map(re.escape, SYMBOLS)))
_PRIVATE_USE = 0xF8F0
_WORD = re.compile(r"[^\W_]+(?:[.,:/'’-][^\W_]+)*")


@dataclass(frozen=True)
class MaskedPair:
    source: str
    target: str
    num_spans: int


def mask(line: str) -> tuple[str, Restorations]:
    """The line with its spans replaced by symbols, and what each symbol stands for."""
    if not may_hold_span(line):
        return line, {}
    symbols = _number_spans(SPAN.finditer(line))
    masked = SPAN.sub(lambda match: symbols.get(match.group(), match.group()), line)
    return masked, {symbol: span for span, symbol in symbols.items()}


def restore(line: str, restorations: Restorations) -> str:
    """Symbols become their spans again; a symbol that stands for nothing was invented and goes."""
    if "⟦" not in line:
        return line
    return _SYMBOL.sub(lambda match: restorations.get(match.group(), ""), line)


def mask_pattern(line: str, pattern: re.Pattern[str], restorations: Restorations) -> tuple[str, Restorations]:
    """Give what the pattern finds the free `term` symbols; what finds none left stays as it is."""
    free = [symbol for symbol in SYMBOLS if symbol.startswith("⟦term") and symbol not in restorations]
    found = dict.fromkeys(match.group() for match in pattern.finditer(line) if match.group() not in SYMBOLS)
    symbols = dict(zip(found, free, strict=False))
    masked = pattern.sub(lambda match: symbols.get(match.group(), match.group()), line)
    return masked, {**restorations, **{symbol: span for span, symbol in symbols.items()}}


def may_hold_span(line: str) -> bool:
    """Spelled out: this runs on every training pair."""
    return "@" in line or "<" in line or "://" in line or "www." in line or "{" in line or "%" in line or "⟦" in line


def mask_shared_spans(source: str, target: str) -> MaskedPair:
    """Replace the URLs, e-mails and tags that stand on both sides alike."""
    targets = {match.group() for match in SPAN.finditer(target)}
    shared = [match for match in SPAN.finditer(source) if match.group() in targets]
    symbols = _number_spans(iter(shared))

    def replace(match: re.Match[str]) -> str:
        return symbols.get(match.group(), match.group())

    return MaskedPair(SPAN.sub(replace, source), SPAN.sub(replace, target), len(symbols))


def shared_words(source: str, target: str) -> list[str]:
    """Numbers and capitalised words that stand exactly once on either side, in the order of the source."""
    copied = {word for word in _WORD.findall(target) if _is_copied(word)}
    words = [word for word in _WORD.findall(source) if word in copied] if copied else []
    return [word for word in words if source.count(word) == 1 and target.count(word) == 1]


def mask_words(source: str, target: str, words: list[str], choice: int) -> MaskedPair:
    """Replace some shared words by symbols; `choice`, any integer, decides how many, which and by which kind.

    Kinds are mixed because real URLs and tags are too rare in most text to teach their symbols.
    """
    count = 1 + choice % min(NUM_SLOTS, len(words))
    start = choice // 8 % (len(words) - count + 1)
    # Half of them `term`, the other kinds share the rest.
    kind = (*KINDS, "term", "term")[choice // 64 % 6]
    marks = [chr(_PRIVATE_USE + slot) for slot in range(1, count + 1)]
    for word, mark in zip(words[start : start + count], marks, strict=True):
        source, target = source.replace(word, mark), target.replace(word, mark)
    # Only now, because the word "1" would be found in the symbol of another.
    for slot, mark in enumerate(marks, start=1):
        symbol = f"⟦{kind}{slot}⟧"
        source, target = source.replace(mark, symbol), target.replace(mark, symbol)
    return MaskedPair(source, target, count)


def _is_copied(word: str) -> bool:
    return word[0].isdigit() or (len(word) > 2 and word[0].isupper())


def _number_spans(matches: Iterator[re.Match[str]]) -> dict[str, str]:
    """Span -> symbol, numbered within its kind; equal spans share one; beyond the last slot text stays text."""
    symbols: dict[str, str] = {}
    used: dict[str, int] = dict.fromkeys(KINDS, 0)
    for match in matches:
        kind = match.lastgroup or "term"
        if match.group() not in symbols and used[kind] < NUM_SLOTS:
            used[kind] += 1
            symbols[match.group()] = f"⟦{kind}{used[kind]}⟧"
    return symbols
