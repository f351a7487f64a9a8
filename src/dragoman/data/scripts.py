"""Letters and writing systems: a table over all code points, and which script a language is written in.

Pure data about Unicode. Knows no text.
"""

import unicodedata
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bits of a packed count: letters, letters of the expected script and spaces of a line add up in one integer.
LETTER = 1
SCRIPT_SHIFT, SPACE_SHIFT = 21, 42
FIELD_MASK = (1 << 21) - 1

NUM_CODE_POINTS = 0x110000
_FIRST_UNLISTED = 0x20000  # from here on only Han ideographs are letters that anybody writes

_RANGES: dict[str, list[tuple[int, int]]] = {
    "latin": [
        *[(0x41, 0x5A), (0x61, 0x7A), (0xAA, 0xAA), (0xBA, 0xBA), (0xC0, 0x24F), (0x250, 0x2AF), (0x300, 0x36F)],
        *[(0x1E00, 0x1EFF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF), (0xFB00, 0xFB06), (0xFF21, 0xFF5A)],
    ],
    "greek": [(0x300, 0x373), (0x376, 0x3FF), (0x1F00, 0x1FFF)],
    "cyrillic": [(0x300, 0x36F), (0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)],
    "armenian": [(0x530, 0x58F)],
    "hebrew": [(0x590, 0x5FF), (0xFB1D, 0xFB4F)],
    "arabic": [(0x600, 0x6FF), (0x750, 0x77F), (0x8A0, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFF)],
    "devanagari": [(0x900, 0x97F), (0xA8E0, 0xA8FF)],
    "bengali": [(0x980, 0x9FF)],
    "gurmukhi": [(0xA00, 0xA7F)],
    "gujarati": [(0xA80, 0xAFF)],
    "tamil": [(0xB80, 0xBFF)],
    "telugu": [(0xC00, 0xC7F)],
    "kannada": [(0xC80, 0xCFF)],
    "malayalam": [(0xD00, 0xD7F)],
    "thai": [(0xE00, 0xE7F)],
    "georgian": [(0x10A0, 0x10FF), (0x1C90, 0x1CBF), (0x2D00, 0x2D2F)],
    "ethiopic": [(0x1200, 0x139F)],
    "han": [(0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)],
    "japanese": [(0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)],
    "hangul": [(0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7AF)],
}

_LANGUAGES = {
    "latin": "af az bs ca cs cy da de en es et eu fi fil fo fr ga gl ha hr hu id is it lt lv ms mt nb nl nn no pl pt "
    "ro sk sl sq sv sw tl tr uz vi zu",
    "cyrillic": "be bg kk ky mk mn ru tg uk",
    "arabic": "ar fa ps ur",
    "devanagari": "hi mr ne",
    "ethiopic": "am ti",
    "greek": "el",
    "armenian": "hy",
    "hebrew": "he",
    "bengali": "bn",
    "gurmukhi": "pa",
    "gujarati": "gu",
    "tamil": "ta",
    "telugu": "te",
    "kannada": "kn",
    "malayalam": "ml",
    "thai": "th",
    "georgian": "ka",
    "han": "zh",
    "japanese": "ja",
    "hangul": "ko",
}
_SCRIPTS = {language: script for script, languages in _LANGUAGES.items() for language in languages.split()}


def script_of(language: str) -> str | None:
    """The script of a language by its two-letter code; None where it has several or we do not know."""
    return _SCRIPTS.get(language)


@cache
def packed_table(script: str | None) -> NDArray[np.int64]:
    """Code point -> packed count of one character."""
    table = np.zeros(NUM_CODE_POINTS, dtype=np.int64)
    table[_letters()] = LETTER
    expected = np.zeros(NUM_CODE_POINTS, dtype=bool)
    for first, last in _RANGES.get(script or "", [(0, NUM_CODE_POINTS - 1)]):
        expected[first : last + 1] = True
    table[expected & (table == LETTER)] |= 1 << SCRIPT_SHIFT
    table[ord(" ")] = 1 << SPACE_SHIFT
    return table


@cache
def _letters() -> NDArray[Any]:
    """Marks count as letters: without them half of an Indic word would be none."""
    letters = np.zeros(NUM_CODE_POINTS, dtype=bool)
    letters[:_FIRST_UNLISTED] = [unicodedata.category(chr(code))[0] in "LM" for code in range(_FIRST_UNLISTED)]
    letters[_FIRST_UNLISTED:0x40000] = True
    return letters
