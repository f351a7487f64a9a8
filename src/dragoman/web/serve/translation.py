"""From a request to its answer: texts to sentences, sentences to the batcher, translations into their documents."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.translate.alignment import Pair
from dragoman.translate.attempt import Best
from dragoman.translate.documents.document import Document, Sentence
from dragoman.translate.documents.formats import split_document
from dragoman.web.serve.batcher import Wanted
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.models import Model
from dragoman.web.serve.problem import Problem
from dragoman.web.serve.schema import TranslateRequest

SHORT_CHARACTERS = 2_000  # are split at once; more would keep other requests waiting


@dataclass
class Note:
    """What the log says of a request."""

    characters: int = 0
    sentences: int = 0
    pair: str = ""


@dataclass(frozen=True)
class Translated:
    """One text."""

    text: str
    alternatives: list[str] = field(default_factory=list[str])
    alignments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def checked_texts(asked: TranslateRequest, limits: Limits, note: Note) -> list[str]:
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    note.characters = sum(map(len, texts))
    if len(texts) > limits.max_texts:
        raise Problem(413, f"{len(texts):,} texts are more than the {limits.max_texts:,} that are taken at once")
    if note.characters > limits.max_characters:
        raise Problem(413, f"{note.characters:,} characters are more than the {limits.max_characters:,} taken at once")
    if asked.alternatives > limits.max_alternatives:
        raise Problem(400, f"there are at most {limits.max_alternatives} alternatives")
    return texts


async def translate(
    texts: Sequence[str], asked: TranslateRequest, model: Model, limits: Limits, note: Note
) -> list[Translated]:
    """Cancelled, it takes back what still waits."""
    note.pair = model.name
    model.batcher.check_room()  # before any work is done
    documents = await _split(texts, asked.format, model.languages[0], note.characters)
    sentences = [sentence.text for document in documents for sentence in document.sentences]
    note.sentences += len(sentences)
    if len(sentences) > limits.max_queue:
        raise Problem(413, f"{len(sentences):,} sentences are more than the {limits.max_queue:,} taken at once")
    wanted = Wanted(1 + asked.alternatives, asked.alignments)
    job = model.batcher.submit(sentences, wanted)
    try:
        results = await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        model.batcher.drop(job)
        raise
    return _filled(documents, results, wanted)


def unchanged(texts: Sequence[str], asked: TranslateRequest) -> list[Translated]:
    """From a language to itself."""
    return [Translated(text, [text] * asked.alternatives) for text in texts]


async def _split(texts: Sequence[str], kind: Any, language: str, num_characters: int) -> list[Document]:
    def split() -> list[Document]:
        return [split_document(text, kind, language) for text in texts]

    return split() if num_characters <= SHORT_CHARACTERS else await asyncio.to_thread(split)


def _filled(documents: Sequence[Document], results: Sequence[Best], wanted: Wanted) -> list[Translated]:
    filled: list[Translated] = []
    first = 0
    for document in documents:
        own = results[first : first + len(document.sentences)]
        first += len(document.sentences)
        texts = [document.filled([best[n].text for best in own]) for n in range(wanted.num_best)]
        pairs = [_aligned(*each) for each in zip(document.sentences, own, strict=True)] if wanted.alignments else []
        filled.append(Translated(texts[0], texts[1:], pairs))
    return filled


def _aligned(sentence: Sentence, best: Best) -> dict[str, Any]:
    """Without the marks of inline markup, which a reader never sees."""
    source, sources = _without_marks(sentence, sentence.text)
    target, targets = _without_marks(sentence, best[0].text)
    pairs: list[Pair] = [
        (sources[i], targets[j]) for i, j in best[0].alignment or () if sources.get(i, -1) >= 0 <= targets.get(j, -1)
    ]
    return {"source": source, "target": target, "pairs": sorted(set(pairs))}


def _without_marks(sentence: Sentence, text: str) -> tuple[str, dict[int, int]]:
    """The text, and the new number of every word that is left."""
    words = [sentence.marks.left_out(word) for word in text.split()]
    left = [number for number, word in enumerate(words) if word]
    return " ".join(word for word in words if word), {old: new for new, old in enumerate(left)}
