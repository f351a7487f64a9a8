"""Which word came from which: from the attention between pieces to pairs of words. Knows no model."""

from collections.abc import Sequence

from dragoman.data.placeholders import Restorations, restore
from dragoman.data.vocab import SPACE

Pair = tuple[int, int]  # a word of the source and one of the target, counted from 0


def align_words(
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    attention: Sequence[Sequence[float]],
    restorations: Restorations,
) -> tuple[Pair, ...]:
    """Every piece of the target with the piece of the source that it looked at most, as words between spaces."""
    sources, targets = (words_of_pieces(pieces, restorations) for pieces in (source_pieces, target_pieces))
    pairs = {
        (word, other)
        for row, others in zip(attention, targets, strict=True)
        for word in sources[max(range(len(row)), key=row.__getitem__)]
        for other in others
    }
    return tuple(sorted(pairs))


def shifted(pairs: Sequence[Pair], by: Pair) -> list[Pair]:
    return [(source + by[0], target + by[1]) for source, target in pairs]


def to_pharaoh(pairs: Sequence[Pair]) -> str:
    """As aligners write it: `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in pairs)


def words_of_pieces(pieces: Sequence[str], restorations: Restorations) -> list[range]:
    """The words of the final text that each piece belongs to; a symbol may stand for several words, or for none."""
    words: list[str] = []
    places: list[int] = []
    for piece in pieces:
        if piece.startswith(SPACE) or not words:
            words.append("")
        words[-1] += piece.removeprefix(SPACE)
        places.append(len(words) - 1)
    ranges: list[range] = []
    first = 0
    for word in words:
        count = len(restore(word, restorations).split())
        ranges.append(range(first, first + count))
        first += count
    return [ranges[place] for place in places]
