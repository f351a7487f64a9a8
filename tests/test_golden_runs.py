"""Recorded runs, healthy ones and ones that something is wrong with: each gets the verdicts it must get."""

import json
from pathlib import Path

import pytest

from dragoman.diagnose.facts import gather_facts
from dragoman.diagnose.questions import answer_questions
from dragoman.diagnose.rules import find
from dragoman.run.reader import read_run

GOLDEN = Path(__file__).parent / "golden"
# Name -> `findings`: exactly these codes; `verdicts`: question -> how its verdict begins.
EXPECTED = json.loads((GOLDEN / "verdicts.json").read_text(encoding="utf-8"))


def test_every_recorded_run_has_its_verdicts():
    assert {path.name for path in (GOLDEN / "runs").iterdir()} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_findings_and_verdicts(name):
    facts = gather_facts(read_run(GOLDEN / "runs" / name))
    assert {finding.code for finding in find(facts)} == set(EXPECTED[name]["findings"])
    verdicts = {answer.number: answer.verdict for answer in answer_questions(facts)}
    assert list(verdicts) == list(range(1, 12))
    for number, beginning in EXPECTED[name]["verdicts"].items():
        assert verdicts[int(number)].startswith(beginning)
