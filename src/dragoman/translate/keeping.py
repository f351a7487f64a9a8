"""What a translation must keep as it is: addresses, tags, numbers, emoji. Finds them, and what of them got lost."""

import re
from collections import Counter

from dragoman.data.placeholders import SPAN

EMOJI = re.compile(
    "(?:[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3"
    "|[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\U0001f000-\U0001f2ff]"
    "[\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
    "(?:\u200d[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff][\ufe0f\U0001f3fb-\U0001f3ff]*)*)"
)
NUMBER = re.compile(r"(?<![^\W\d_])(?<![\d⟦])\d+(?:[.,:/'’-]\d+)*(?!⟧)")
# A model rewrites these as its language would (1,250.50 as 1.250,50), so that it had better not see them.
SEPARATED_NUMBER = re.compile(r"(?<![\w.,⟦])\d+(?:[.,:/'’-]\d+)+(?![\d⟧])")


def spans_to_keep(line: str) -> list[str]:
    """All of them, in order, as often as they stand there."""
    found: list[tuple[int, str]] = []
    covered: list[range] = []
    for pattern in (SPAN, EMOJI, NUMBER):
        for match in pattern.finditer(line):
            if not any(match.start() in other for other in covered):
                covered.append(range(*match.span()))
                found.append((match.start(), match.group()))
    return [text for _, text in sorted(found)]


def lost_spans(line: str, translation: str) -> list[str]:
    """Those of a line that its translation does not have as often; in the order of the line."""
    wanted = Counter(spans_to_keep(line))
    if not wanted:
        return []
    present = Counter(spans_to_keep(translation))
    return [span for span, count in wanted.items() if max(present[span], _count(span, translation)) < count]


def _count(span: str, text: str) -> int:
    """A number inside another is another number; anything else may stand between other signs."""
    return 0 if span[0].isdigit() else text.count(span)
