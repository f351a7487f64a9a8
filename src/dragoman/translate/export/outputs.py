"""What a model makes of the sample: beam search, and where numbers must agree, greedy search and forced decoding."""

from collections.abc import Callable, Iterator, Sequence

from dragoman.translate.engine import Engine
from dragoman.translate.export.gate import Outputs, Sample
from dragoman.translate.translator import Translator

SCORED_AT_ONCE = 16
Advance = Callable[[int], None]
# Told what begins and how many sentences it has; gives whom to tell of every batch.
Watch = Callable[[str, int], Advance]


def make_outputs(translator: Translator, sample: Sample, is_exact: bool, label: str, watch: Watch) -> Outputs:
    num_sentences = len(sample.sources)
    beam = _texts(translator, sample, watch(f"{label}: beam search", num_sentences))
    if not is_exact:
        return Outputs(beam)
    greedy = _texts(translator, sample, watch(f"{label}: greedy search", num_sentences), beam=1)
    scores = score_references(translator.engine, sample, watch(f"{label}: forced decoding", num_sentences))
    return Outputs(beam, greedy, scores)


def _texts(translator: Translator, sample: Sample, advance: Advance, beam: int | None = None) -> list[str]:
    best = translator.translate(sample.sources, beam=beam, on_progress=advance)
    return [hypotheses[0].text for hypotheses in best]


def score_references(engine: Engine, sample: Sample, advance: Advance) -> list[float]:
    """Of the pairs with words on both sides, what is too long cut; in the order of their length."""
    pairs = list(_encoded(engine, sample))
    pairs.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
    scores: list[float] = []
    for first in range(0, len(pairs), SCORED_AT_ONCE):
        batch = pairs[first : first + SCORED_AT_ONCE]
        scores += engine.score([source for source, _ in batch], [target for _, target in batch])
        advance(len(batch))
    return scores


def _encoded(engine: Engine, sample: Sample) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    for line, reference in zip(sample.sources, sample.references, strict=True):
        source, _ = engine.vocab.encode_source(line, mask=engine.learned_placeholders)
        (target,) = engine.vocab.encode([reference])
        if source and target:
            yield source[: engine.max_pieces], target[: engine.max_pieces]
