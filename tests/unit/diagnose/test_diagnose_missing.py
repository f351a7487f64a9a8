"""Whatever is missing, torn or no number: eleven answers, never an exception, and no finding made of nothing."""

import math
import time
from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import diagnose_samples as samples
from dragoman.diagnose.facts import gather_facts
from dragoman.diagnose.finding import NOT_RECORDED
from dragoman.diagnose.headline import headline, scaling_line
from dragoman.diagnose.questions import answer_questions
from dragoman.diagnose.rules import find
from dragoman.run.reader import RunRecord
from dragoman.run.records import TimingRecord

FULL = {
    "one": samples.build(replace(samples.HEALTHY_ONE, num_steps=60, eval_every=10)),
    "two": samples.build(replace(samples.HEALTHY_TWO, num_steps=60, eval_every=10, has_gpus=True, price_per_hour=3.0)),
    "resumed": samples.build(replace(samples.RESUMED, attempts=((1, 51), (41, 90)), num_steps=90)),
}
RECORDS = ("steps", "timings", "evals", "events", "checkpoints", "samples", "lost_steps")
OLD = {"sent_bytes": 0, "card_sent_bytes": None, "exchange_start": None}


def diagnose(run: RunRecord) -> set[str]:
    facts = gather_facts(run)
    answers = answer_questions(facts)
    assert [answer.number for answer in answers] == list(range(1, 12))
    assert all(answer.sentences for answer in answers)
    for answer in answers:
        assert (answer.verdict == NOT_RECORDED) == (answer.confidence == "not recorded")
        assert answer.verdict != NOT_RECORDED or "`" in answer.missing or "recipe" in answer.missing
        assert "nan" not in f"{answer.verdict} {answer.sentences}".lower().replace("(", " ").split()
    assert len(headline(facts)) == 3
    scaling_line(facts)
    return {finding.code for finding in find(facts)}


def test_a_run_that_has_not_begun():
    run = replace(FULL["two"], **dict.fromkeys(RECORDS, ()), profile=None, prediction=None, sentences={})
    assert diagnose(run) == set()
    verdicts = [answer.verdict for answer in answer_questions(gather_facts(run))]
    assert verdicts.count(NOT_RECORDED) == 10  # the data is in the manifest


def test_a_run_of_an_older_version():
    run = FULL["two"]
    old = tuple(replace(line, **OLD) for line in run.timings)
    manifest = replace(run.manifest, exchange=None, hosts=tuple(replace(h, interface=None) for h in run.manifest.hosts))
    events = tuple(event for event in run.events if event.kind != "clocks")
    assert diagnose(
        replace(run, timings=old, manifest=manifest, events=events, samples=(), profile=None, prediction=None)
    ) == set()  # fmt: skip


def test_an_empty_manifest():
    run = FULL["one"]
    data = replace(
        run.manifest.data, num_pairs=0, source=replace(run.manifest.data.source, clean_bytes=0), vocab_size=0
    )
    bare = replace(run.manifest, recipe={}, hosts=(), attempts=(), num_parameters=0, data=data, exchange=None)
    assert diagnose(replace(run, manifest=bare)) == set()
    odd = replace(run.manifest, recipe={"optim": {"learning_rate": "fast"}, "train": 7, "model": None})
    assert diagnose(replace(run, manifest=odd)) == set()


@pytest.mark.parametrize("num_steps", [0, 1, 2, 9, 21])
@pytest.mark.parametrize("name", FULL)
def test_a_run_of_few_steps(name, num_steps):
    run = FULL[name]
    cut = {kind: tuple(r for r in getattr(run, kind) if r.step <= num_steps) for kind in ("steps", "timings", "evals")}
    assert diagnose(replace(run, **cut)) <= {"prediction-missed"}


def test_losses_that_are_no_numbers():
    run = FULL["one"]
    nan, inf = math.nan, math.inf
    steps = tuple(replace(s, loss=nan, nll=nan, gradient_norm=inf) if s.step > 30 else s for s in run.steps)
    evals = tuple(replace(e, loss=nan, train_loss=nan, bleu=nan) if e.step > 30 else e for e in run.evals)
    assert {"diverged", "gradient-exploding"} <= diagnose(replace(run, steps=steps, evals=evals))
    every = tuple(replace(s, loss=nan, nll=nan, gradient_norm=nan, learning_rate=nan) for s in run.steps)
    assert "diverged" in diagnose(replace(run, steps=every, evals=()))


def test_seconds_that_cannot_be():
    run = FULL["two"]
    names = [field.name for field in fields(TimingRecord) if field.name.endswith("_seconds")]
    for value in (math.nan, -1.0, 0.0):
        lines = tuple(replace(line, **dict.fromkeys(names, value)) for line in run.timings)
        steps = tuple(replace(step, step_seconds=value) for step in run.steps)
        diagnose(replace(run, timings=lines, steps=steps))


def test_a_host_whose_lines_were_lost():
    run = FULL["two"]
    kept = tuple(line for line in run.timings if line.host == "a" or line.step < 20)
    assert diagnose(replace(run, timings=kept, samples=run.samples[:3])) == set()
    assert diagnose(replace(run, timings=tuple(line for line in run.timings if line.rank == 1))) == set()


@given(
    st.sampled_from(sorted(FULL)),
    st.dictionaries(st.sampled_from(RECORDS), st.floats(0, 1), max_size=7),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_part_may_be_missing(name, shares, has_profile, has_prediction, has_sentences, draw):
    run = FULL[name]
    kept = {
        kind: tuple(record for record in getattr(run, kind) if draw.random() < share) for kind, share in shares.items()
    }
    if not has_profile:
        kept["profile"] = None
    if not has_prediction:
        kept["prediction"] = None
    if not has_sentences:
        kept["sentences"] = {}
    diagnose(replace(run, **kept))


def test_a_long_run_takes_seconds():
    """100,000 steps of 4 ranks; the records are copies, for only their number matters here."""
    shape = replace(samples.HEALTHY_TWO, ranks_per_host=2, num_steps=250, validation_seconds=0.1)
    run = samples.build(shape)
    steps = tuple(replace(step, step=step.step + 250 * part) for part in range(400) for step in run.steps)
    rows = [tuple(getattr(line, name) for name in TimingRecord.__slots__) for line in run.timings]
    timings = tuple(
        TimingRecord(row[0], row[1] + 60 * part, row[2] + 250 * part, *row[3:]) for part in range(400) for row in rows
    )
    long = replace(run, steps=steps, timings=timings)
    best = math.inf
    for _ in range(2):
        start = time.process_time()
        facts = gather_facts(long)
        best = min(best, time.process_time() - start)
    assert len(facts.steps) == 100_000
    assert best < 4.0, f"gathering took {best:.1f} s; a free machine takes under 2"
