"""A run with everything that is said about it: what the page, the Markdown and the JSON are all written from."""

import dataclasses
from dataclasses import dataclass

from dragoman.diagnose.facts import Facts, gather_facts
from dragoman.diagnose.finding import Answer, Finding
from dragoman.diagnose.headline import headline, scaling_line
from dragoman.diagnose.questions import answer_questions
from dragoman.diagnose.rules import RULES, find
from dragoman.report.summary import Summary, summarize
from dragoman.run.reader import RunRecord

# A rule is named like the finding that it makes.
CODES = tuple(rule.__name__.replace("_", "-") for rule in RULES)
HEADLINE_LABELS = ("What limited it", "What to do", "What that is worth")


@dataclass(frozen=True)
class Diagnosis:
    """Facts, figures and verdicts of one run. A worksheet keeps the questions and their numbers alone."""

    facts: Facts
    summary: Summary
    answers: tuple[Answer, ...]
    findings: tuple[Finding, ...]
    headline: tuple[str, ...]
    scaling: str | None
    is_worksheet: bool = False

    @property
    def run(self) -> RunRecord:
        return self.facts.run

    @property
    def headline_rows(self) -> list[tuple[str, str]]:
        """(label, line); a line that has nothing to say is left out."""
        return [(label, line) for label, line in zip(HEADLINE_LABELS, self.headline, strict=False) if line]


def diagnose(run: RunRecord) -> Diagnosis:
    facts = gather_facts(run)
    return Diagnosis(
        facts=facts,
        summary=summarize(facts),
        answers=tuple(answer_questions(facts)),
        findings=tuple(find(facts)),
        headline=headline(facts),
        scaling=scaling_line(facts),
    )


def as_worksheet(diagnosis: Diagnosis) -> Diagnosis:
    """The same run with every verdict taken out, for a class to answer."""
    return dataclasses.replace(
        diagnosis,
        answers=tuple(_open(answer) for answer in diagnosis.answers),
        findings=(),
        headline=(),
        scaling=None,
        is_worksheet=True,
    )


def _open(answer: Answer) -> Answer:
    return dataclasses.replace(answer, verdict="", sentences="", evidence="", confidence="not recorded", missing="")
