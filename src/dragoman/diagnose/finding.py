"""What a diagnosis says: an answer to one of the eleven questions, and a finding. Words and numbers, no rule."""

from dataclasses import dataclass, field
from typing import Literal

Confidence = Literal["high", "medium", "low", "not recorded"]
Level = Literal["problem", "warning", "note"]
NOT_RECORDED = "Not recorded."
LEVELS: tuple[Level, ...] = ("problem", "warning", "note")  # worst first


@dataclass(frozen=True, slots=True)
class Number:
    """A figure of an answer, with its unit."""

    label: str
    value_text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the eleven. `verdict` stands in bold before the sentences."""

    number: int
    question: str
    verdict: str
    sentences: str  # two to four
    numbers: tuple[Number, ...] = ()
    chart: str | None = None  # which one the report draws beside it
    evidence: str = ""  # which records, and how it was decided
    confidence: Confidence = "high"
    missing: str = ""  # what was not recorded, and what would record it


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a rule saw. The code is stable: scripts and the documentation know it."""

    code: str
    title: str
    level: Level
    evidence: str  # one sentence with numbers
    advice: str
    effect: str = ""  # what the advice would probably bring
    since_step: int | None = None
    link: str = field(init=False)  # into the documentation

    def __post_init__(self) -> None:
        object.__setattr__(self, "link", f"docs/findings.md#{self.code}")


QUESTIONS = (
    "How long did the training run take?",
    "Is the model fully trained, and how can you tell?",
    "Was it overfitting?",
    "Were the GPUs fully used?",
    "Was the network the bottleneck?",
    "What does the learning-rate curve show, and which setting explains it?",
    "How big was the training set?",
    "Which files make up a checkpoint?",
    "How big is a checkpoint?",
    "How long did an average step take?",
    "How does the step time relate to the traffic between the machines?",
)


def not_recorded(number: int, sentences: str, missing: str) -> Answer:
    """No guess: what is missing, and the command that would record it."""
    return Answer(
        number=number,
        question=QUESTIONS[number - 1],
        verdict=NOT_RECORDED,
        sentences=sentences,
        confidence="not recorded",
        missing=missing,
    )
