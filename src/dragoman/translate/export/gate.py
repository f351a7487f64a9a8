"""Does an export translate as the original does? Two lists of outputs in, a verdict out. Knows no model."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.score import Comparison, Contrast, compare

SCORE_LIMIT = 1e-3  # log-probability of a reference
GREEDY_LIMIT = 0.995  # share of the lines
EXACT_BLEU_LIMIT = 0.05
QUANTIZED_BLEU_LIMIT = 0.2
NUM_SHOWN = 3


@dataclass(frozen=True)
class Sample:
    """The sentences that both translate."""

    name: str
    sources: list[str]
    references: list[str]
    target_language: str


@dataclass(frozen=True)
class Outputs:
    """What one of the two made of the sample. Where numbers may differ, only beam search is compared."""

    beam: list[str]
    greedy: list[str] | None = None
    scores: list[float] | None = None  # of the references


@dataclass(frozen=True)
class Check:
    """One figure and the limit that it must keep."""

    name: str
    value: float
    limit: float
    passed: bool
    text: str


@dataclass(frozen=True)
class Verdict:
    sample: Sample
    checks: tuple[Check, ...]
    comparison: Comparison  # of beam search; a is the export, b the original
    differences: tuple[str, ...]  # the first lines that differ, to be shown

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


def judge(sample: Sample, original: Outputs, export: Outputs, extra: Sequence[Check] = ()) -> Verdict:
    """Exact where both have scores and greedy output; else by BLEU alone."""
    comparison = compare(export.beam, original.beam, sample.references, sample.sources, sample.target_language, 0)
    is_exact = original.scores is not None and original.greedy is not None
    checks = [*extra]
    if is_exact:
        assert original.scores and original.greedy and export.scores and export.greedy
        checks += [check_scores(original.scores, export.scores), check_greedy(original.greedy, export.greedy)]
    checks.append(check_bleu(comparison.bleu, EXACT_BLEU_LIMIT if is_exact else QUANTIZED_BLEU_LIMIT))
    return Verdict(sample, tuple(checks), comparison, tuple(first_differences(sample, original, export)))


def check_scores(original: Sequence[float], export: Sequence[float]) -> Check:
    differences = [abs(a - b) for a, b in zip(original, export, strict=True)]
    # A NaN compares with nothing: it must neither hide nor pass.
    largest = max(math.inf if math.isnan(each) else each for each in differences)
    text = f"log-probabilities of the references differ by at most {largest:.1e} (limit {SCORE_LIMIT:.0e})"
    return Check("score difference", largest, SCORE_LIMIT, largest <= SCORE_LIMIT, text)


def check_greedy(original: Sequence[str], export: Sequence[str]) -> Check:
    share = sum(a == b for a, b in zip(original, export, strict=True)) / len(original)
    text = f"{share:.1%} of the lines are alike in greedy search (limit {GREEDY_LIMIT:.1%})"
    return Check("greedy alike", share, GREEDY_LIMIT, share >= GREEDY_LIMIT, text)


def check_bleu(bleu: Contrast, limit: float) -> Check:
    interval = f"[{bleu.low:+.2f}, {bleu.high:+.2f}]"
    text = f"BLEU {bleu.a:.2f} against {bleu.b:.2f}: {bleu.delta:+.2f} {interval} (limit {limit} either way)"
    return Check("BLEU difference", bleu.delta, limit, abs(bleu.delta) <= limit, text)


def check_tokenizer(expected: Sequence[Sequence[int]], found: Sequence[Sequence[int]]) -> Check:
    """A tokenizer of another library against SentencePiece: every sentence alike, or the model reads other words."""
    share = sum(list(a) == list(b) for a, b in zip(expected, found, strict=True)) / len(expected)
    text = f"{share:.1%} of the sentences become the same pieces (limit 100 %)"
    return Check("tokenizer alike", share, 1.0, share >= 1.0, text)


def first_differences(sample: Sample, original: Outputs, export: Outputs) -> list[str]:
    """Of greedy search where there is one: it shows where the numbers part."""
    pairs = zip(original.greedy or original.beam, export.greedy or export.beam, strict=True)
    places = [i for i, (mine, theirs) in enumerate(pairs) if mine != theirs][:NUM_SHOWN]
    mine, theirs = original.greedy or original.beam, export.greedy or export.beam
    return [f"line {i + 1}   {sample.sources[i]}\n  original {mine[i]}\n  export   {theirs[i]}" for i in places]


def to_record(verdict: Verdict) -> dict[str, Any]:
    """As `model.json` keeps it."""
    comparison = verdict.comparison
    contrasts = {
        contrast.name: {
            "export": contrast.a,
            "original": contrast.b,
            "delta": contrast.delta,
            "low": contrast.low,
            "high": contrast.high,
            "p_value": contrast.p_value,
            "signature": contrast.signature,
        }
        for contrast in (comparison.bleu, comparison.chrf)
    }
    return {
        "passed": verdict.passed,
        "dev_set": verdict.sample.name,
        "num_sentences": len(verdict.sample.sources),
        "num_equal": comparison.num_equal,
        "checks": [asdict(check) for check in verdict.checks],
        "scores": contrasts,
    }
