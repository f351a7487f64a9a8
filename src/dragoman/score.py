"""BLEU, chrF and TER with signature and bootstrap interval, and the paired comparison of two systems.

Scores detokenized text against one reference with sacrebleu's defaults. Knows no model, no run and no torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95
NUM_RESAMPLES = 1_000
SEED = 12_345
# sacrebleu's default cuts at spaces, which these languages do not write between words.
TOKENIZERS = {"zh": "zh", "ja": "char", "th": "char", "km": "char", "lo": "char", "my": "char"}


@dataclass(frozen=True, slots=True)
class Metric:
    """One score of one system. `low` and `high` bound the bootstrap interval."""

    name: str
    value: float
    low: float
    high: float
    signature: str
    confidence: float = CONFIDENCE


@dataclass(frozen=True, slots=True)
class Scores:
    bleu: Metric
    chrf: Metric
    ter: Metric

    def __iter__(self) -> Iterator[Metric]:
        return iter((self.bleu, self.chrf, self.ter))


@dataclass(frozen=True, slots=True)
class QuickScores:
    """What validation during training records."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


@dataclass(frozen=True, slots=True)
class Contrast:
    """One metric of two systems on the same sentences: `delta` is a - b, `low` and `high` its interval."""

    name: str
    a: float
    b: float
    delta: float
    low: float
    high: float
    p_value: float  # of a difference at least this large if the systems were equal
    higher_is_better: bool
    signature: str
    confidence: float = CONFIDENCE

    @property
    def is_significant(self) -> bool:
        return self.p_value < 1 - self.confidence

    @property
    def a_is_worse(self) -> bool:
        """Worse beyond chance; a difference that may be chance is not."""
        return self.is_significant and (self.delta < 0) == self.higher_is_better


@dataclass(frozen=True, slots=True)
class Difference:
    """A sentence the two systems translate differently; its own chrF says which is nearer."""

    index: int
    source: str | None
    reference: str
    a: str
    b: str
    chrf_a: float
    chrf_b: float


@dataclass(frozen=True, slots=True)
class Comparison:
    bleu: Contrast
    chrf: Contrast
    ter: Contrast
    differences: tuple[Difference, ...]  # largest first
    num_equal: int  # sentences translated alike

    def __iter__(self) -> Iterator[Contrast]:
        return iter((self.bleu, self.chrf, self.ter))


def score(hypotheses: Sequence[str], references: Sequence[str], target_language: str = "") -> Scores:
    """All three metrics, each with its interval."""
    _check_lengths(hypotheses, references)
    metrics = [
        _score_one(name, metric, _statistics(metric, hypotheses, references))
        for name, metric in _metrics(target_language)
    ]
    return Scores(*metrics)


def quick_bleu_chrf(hypotheses: Sequence[str], references: Sequence[str], target_language: str = "") -> QuickScores:
    """BLEU and chrF alone, without intervals: a third of a second for a thousand sentences."""
    _check_lengths(hypotheses, references)
    (_, bleu), (_, chrf) = _metrics(target_language)[:2]
    return QuickScores(
        bleu.corpus_score(hypotheses, [references]).score,
        chrf.corpus_score(hypotheses, [references]).score,
        str(bleu.get_signature()),
        str(chrf.get_signature()),
    )


def compare(
    hypotheses_a: Sequence[str],
    hypotheses_b: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    target_language: str = "",
    num_differences: int = 5,
) -> Comparison:
    """Paired bootstrap (Koehn 2004): both systems are scored on the same resampled test sets."""
    for other in (hypotheses_a, hypotheses_b, sources or references):
        _check_lengths(other, references)
    contrasts: list[Contrast] = []
    sentence_chrf: list[list[float]] = []
    for name, metric in _metrics(target_language):
        statistics = [_statistics(metric, system, references) for system in (hypotheses_a, hypotheses_b)]
        contrasts.append(_contrast(name, metric, *statistics))
        if name == "chrF":
            sentence_chrf = [[_value(metric, row) for row in system] for system in statistics]
    rows = zip(hypotheses_a, hypotheses_b, references, sources or [None] * len(references), strict=True)
    differences = [
        Difference(index, source, reference, a, b, sentence_chrf[0][index], sentence_chrf[1][index])
        for index, (a, b, reference, source) in enumerate(rows)
        if a != b
    ]
    differences.sort(key=lambda item: (-abs(item.chrf_a - item.chrf_b), item.index))
    bleu, chrf, ter = contrasts
    num_equal = len(references) - len(differences)
    return Comparison(bleu, chrf, ter, tuple(differences[:num_differences]), num_equal)


def _metrics(target_language: str) -> list[tuple[str, Any]]:
    """In the order of `Scores`. sacrebleu takes a tenth of a second to import, so not before it is needed."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    # force: silences the warning about tokenized text, which is wrong about sentences that end in " .".
    bleu = BLEU(tokenize=TOKENIZERS.get(target_language, "13a"), force=True)
    return [("BLEU", bleu), ("chrF", CHRF()), ("TER", TER())]


def _statistics(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> "NDArray[np.float64]":
    """One row per sentence (n-gram matches and the like); a corpus score is a function of their sum."""
    import numpy as np

    return np.asarray(metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)


def _value(metric: Any, summed: "NDArray[np.float64]") -> float:
    return float(metric._compute_score_from_stats(summed.tolist()).score)


def _score_one(name: str, metric: Any, statistics: "NDArray[np.float64]") -> Metric:
    resampled = _resampled_scores(metric, statistics)[0]
    low, high = _interval(resampled)
    value = _value(metric, statistics.sum(0))
    return Metric(name, value, low, high, str(metric.get_signature()))


def _contrast(name: str, metric: Any, a: "NDArray[np.float64]", b: "NDArray[np.float64]") -> Contrast:
    import numpy as np

    value_a, value_b = _value(metric, a.sum(0)), _value(metric, b.sum(0))
    resampled_a, resampled_b = _resampled_scores(metric, a, b)
    deltas = resampled_a - resampled_b
    low, high = _interval(deltas)
    # The null hypothesis: the same spread of differences around zero. One is added on both sides, as
    # sacrebleu does, because a p-value of zero cannot be had from finitely many samples.
    num_larger = int(np.sum(np.abs(deltas - deltas.mean()) > abs(value_a - value_b)))
    is_same = bool(np.all(deltas == 0))
    p_value = 1.0 if is_same else (num_larger + 1) / (NUM_RESAMPLES + 1)
    signature = str(metric.get_signature())
    return Contrast(name, value_a, value_b, value_a - value_b, low, high, p_value, name != "TER", signature)


def _resampled_scores(metric: Any, *systems: "NDArray[np.float64]") -> "list[NDArray[np.float64]]":
    """Scores of each system on `NUM_RESAMPLES` test sets drawn with replacement, the same sets for all."""
    import numpy as np

    random = np.random.default_rng(SEED)
    num_sentences = len(systems[0])
    scores = np.empty((len(systems), NUM_RESAMPLES))
    for sample in range(NUM_RESAMPLES):
        drawn = random.integers(0, num_sentences, num_sentences)
        # Counts, not rows: memory stays that of one test set whatever its size.
        counts = np.bincount(drawn, minlength=num_sentences)
        for number, statistics in enumerate(systems):
            scores[number, sample] = _value(metric, counts @ statistics)
    return list(scores)


def _interval(values: "NDArray[np.float64]") -> tuple[float, float]:
    import numpy as np

    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def _check_lengths(lines: Sequence[str], references: Sequence[str]) -> None:
    if not references:
        raise DragomanError("there is no sentence to score", "give a test set with at least one line")
    if len(lines) != len(references):
        raise DragomanError(
            f"{len(lines):,} sentences against {len(references):,} references",
            "line N of one file must belong to line N of the other",
        )
