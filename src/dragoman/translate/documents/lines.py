"""Lines, each of which may hold several sentences, translated together and put together again."""

from collections.abc import Callable, Sequence

from dragoman.translate.alignment import Pair, shifted
from dragoman.translate.documents.document import Document, Sentence, split_text
from dragoman.translate.parts import Hypothesis

Translate = Callable[[list[str]], list[list[Hypothesis]]]


def translate_lines(lines: Sequence[str], language: str, translate: Translate) -> list[list[Hypothesis]]:
    """The translations of every line, best first; the score of a line is the sum over its sentences."""
    documents = [split_text(line, language) for line in lines]
    best = iter(translate([sentence.text for document in documents for sentence in document.sentences]))
    return [_join(document, [next(best) for _ in document.sentences]) for document in documents]


def _join(document: Document, best: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    if not best:
        return [Hypothesis("".join(document.frame), 0.0, ())]
    return [_join_one(document, column) for column in zip(*best, strict=True)]


def _join_one(document: Document, hypotheses: Sequence[Hypothesis]) -> Hypothesis:
    source = target = ""
    pairs: list[Pair] = []
    rows = zip(document.frame, [*document.sentences, Sentence("")], [*hypotheses, Hypothesis("", 0.0, ())], strict=True)
    for frame, sentence, hypothesis in rows:
        source, target = source + frame, target + frame
        by = (len(source.split()), len(target.split()))
        pairs += shifted(hypothesis.alignment or (), by)
        source, target = source + sentence.text, target + hypothesis.text
    is_aligned = all(hypothesis.alignment is not None for hypothesis in hypotheses)
    return Hypothesis(target, sum(each.score for each in hypotheses), tuple(pairs) if is_aligned else None)
