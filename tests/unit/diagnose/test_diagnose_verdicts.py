"""Every made-up run gets the verdicts and findings it must get, and the healthy ones get no finding."""

from dataclasses import replace

import pytest

import diagnose_samples as samples
from dragoman.diagnose.facts import gather_facts
from dragoman.diagnose.headline import headline, scaling_line
from dragoman.diagnose.questions import answer_questions
from dragoman.diagnose.rules import find
from dragoman.run.samples import GpuSample

CASES = {
    "healthy-one": (samples.HEALTHY_ONE, {3: "No sign of it.", 4: "Yes.", 5: "No."}, set()),
    "healthy-two-ranks": (samples.HEALTHY_TWO_RANKS, {3: "No sign of it.", 5: "No."}, set()),
    "healthy-two-hosts": (samples.HEALTHY_TWO, {3: "No sign of it.", 5: "No."}, set()),
    "network-bound": (
        samples.NETWORK_BOUND,
        {4: "Busy, not used.", 5: "Yes.", 11: "A step takes as long as its bytes need."},
        {"network-bound", "card-slower-than-it-says"},
    ),
    "sum-limited": (
        samples.SUM_LIMITED, {5: "Yes."}, {"network-bound", "link-sum-limited", "card-slower-than-it-says"},
    ),
    "input-bound": (samples.INPUT_BOUND, {5: "No."}, {"input-bound"}),
    "straggler": (samples.STRAGGLER, {5: "No: a slow rank was."}, {"straggler", "prediction-missed"}),
    "overfitting": (
        samples.OVERFITTING,
        {2: "Yes, and past its best at step 120.", 3: "Yes, from about step 120."},
        {"overfitting"},
    ),
    "diverged": (
        samples.DIVERGED, {2: "No: it diverged at step 61."}, {"diverged", "rate-too-high", "gradient-exploding"},
    ),
    "undertrained": (samples.UNDERTRAINED, {2: "No.", 3: "No sign of it."}, set()),
    "plateau": (samples.PLATEAU, {2: "Yes."}, {"plateau"}),
    "resumed": (samples.RESUMED, {3: "No sign of it."}, set()),
    "crashed": (samples.CRASHED, {3: "No sign of it."}, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_run_is_told_what_it_must_be_told(name):
    shape, verdicts, codes = CASES[name]
    facts = gather_facts(samples.build(shape))
    answers = answer_questions(facts)
    assert [answer.number for answer in answers] == list(range(1, 12))
    assert {finding.code for finding in find(facts)} == codes
    assert {number: answers[number - 1].verdict for number in verdicts} == verdicts


@pytest.mark.parametrize("name", CASES)
def test_answers_have_two_to_four_sentences_and_units(name):
    for answer in answer_questions(gather_facts(samples.build(CASES[name][0]))):
        count = len([part for part in answer.sentences.replace("e.g.", "").split(". ") if part.strip()])
        assert 2 <= count <= 4, (answer.number, answer.sentences)
        assert answer.evidence and answer.sentences.endswith("."), answer
        assert "nan" not in answer.sentences.lower().split(), answer
        assert not any(number.value_text in ("", "nan") for number in answer.numbers)


def test_the_worst_finding_comes_first():
    levels = [finding.level for finding in find(gather_facts(samples.build(samples.NETWORK_BOUND)))]
    assert levels == sorted(levels, key=("problem", "warning", "note").index)


def test_the_three_lines_of_a_network_bound_run():
    facts = gather_facts(samples.build(samples.NETWORK_BOUND))
    limit, action, worth = headline(facts)
    assert limit.startswith("The network limited the run: 9")
    assert "a step instead of" in action
    assert "$" in worth and "80 steps" in worth


def test_the_three_lines_of_a_healthy_run_name_no_fault():
    limit, action, _ = headline(gather_facts(samples.build(replace(samples.HEALTHY_TWO, validation_seconds=0.5))))
    assert limit.startswith("Computing limited the run: 9")
    assert action.startswith("Nothing to mend")


def test_the_three_lines_name_the_slow_host_and_not_the_network():
    limit, _, _ = headline(gather_facts(samples.build(samples.STRAGGLER)))
    assert "host b" in limit


def test_two_hosts_are_compared_with_one():
    line = scaling_line(gather_facts(samples.build(samples.HEALTHY_TWO)))
    assert line is not None
    assert line.startswith("2 hosts gave 1.") and "for twice the price" in line
    slower = scaling_line(gather_facts(samples.build(samples.NETWORK_BOUND)))
    assert slower is not None and "as slow as one host alone" in slower
    assert scaling_line(gather_facts(samples.build(samples.HEALTHY_ONE))) is None


def test_one_host_alone_is_computed_from_the_profile_where_nothing_was_predicted():
    run = replace(samples.build(samples.HEALTHY_TWO), prediction=None)
    line = scaling_line(gather_facts(run))
    # 2 pieces of 0.1 s, 2 ms, 1 ms; and the run computed at 1.1 times the seconds that were measured before
    assert line is not None and "against 0.223 s" in line


def test_a_link_that_became_slower_is_dated():
    shape = replace(samples.HEALTHY_TWO, transfer=lambda step: 0.03 if step < 180 else 0.2, num_steps=300)
    found = {finding.code: finding for finding in find(gather_facts(samples.build(shape)))}
    assert abs((found["link-slower"].since_step or 0) - 180) <= 3
    assert "link-slower" not in {f.code for f in find(gather_facts(samples.build(samples.NETWORK_BOUND)))}


def test_validation_and_checkpoints_that_eat_the_time():
    shape = replace(samples.HEALTHY_ONE, validation_seconds=60.0, checkpoint_seconds=30.0)
    assert {f.code for f in find(gather_facts(samples.build(shape)))} == {"validation-heavy", "checkpoint-heavy"}


def test_throttled_gpus_and_full_memory():
    hot = GpuSample(0, 1.0, 15 * 2**30, 15 * 2**30 + 2**20, 150.0, 300.0, 700, 1_530, 95, ("sw_thermal",))
    shape = replace(samples.HEALTHY_ONE, has_gpus=True, gpu=hot)
    assert {f.code for f in find(gather_facts(samples.build(shape)))} == {"gpu-throttled", "memory-full"}
    capped = replace(hot, clock_mhz=1_450, memory_used_bytes=2**30, throttle_reasons=("sw_power_cap",))
    assert not find(gather_facts(samples.build(replace(shape, gpu=capped))))
    full = replace(samples.HEALTHY_ONE, memory_share=0.98)
    assert {f.code for f in find(gather_facts(samples.build(full)))} == {"memory-full"}


def test_full_gpus_are_told_how_many_microbatches_there_were():
    full = GpuSample(0, 1.0, 15 * 2**30, 15 * 2**30 + 2**20, 150.0, 300.0, 1_500, 1_530, 70)
    run = samples.build(replace(samples.HEALTHY_ONE, has_gpus=True, gpu=full))
    for number, words in ((None, "Raise batch.num_microbatches: "), (3, "Raise batch.num_microbatches from 3 to 6: ")):
        known = replace(run, manifest=replace(run.manifest, num_microbatches=number))
        (finding,) = find(gather_facts(known))
        assert finding.advice.startswith(words)


def test_rejects_and_leaks():
    run = samples.build(samples.HEALTHY_ONE)
    data = replace(run.manifest.data, rejected={"wrong_script": 40_000, "duplicate": 9}, removes_overlap=False)
    found = find(gather_facts(replace(run, manifest=replace(run.manifest, data=data))))
    assert {finding.code for finding in found} == {"many-rejects", "dev-leak"}
    assert "wrong_script" in found[0].evidence
    leaked = replace(samples.HEALTHY_ONE, dev_loss=lambda step: 0.5 * samples.HEALTHY_ONE.train_loss(step))
    assert {finding.code for finding in find(gather_facts(samples.build(leaked)))} == {"dev-leak"}


def test_a_resume_that_lost_the_optimizer_or_much_work():
    def jumps(step: int) -> float:
        return samples.HEALTHY_ONE.nll(step) + (1.5 if step > 150 else 0.0)

    codes = {f.code for f in find(gather_facts(samples.build(replace(samples.RESUMED, nll=jumps))))}
    assert "resumed-badly" in codes
    lossy = replace(samples.HEALTHY_ONE, attempts=((1, 250), (31, 300)))
    assert {f.code for f in find(gather_facts(samples.build(lossy)))} == {"resumed-badly"}


def test_a_rate_that_never_left_its_warm_up():
    shape = replace(
        samples.HEALTHY_ONE,
        optim={"warmup_steps": 8_000, "learning_rate": 0.003, "schedule": "linear"},
        nll=lambda step: 8.0 - 0.004 * step,
        dev_loss=lambda step: 8.0 - 0.004 * step,
        train_loss=lambda step: 8.0 - 0.004 * step,
    )
    assert {f.code for f in find(gather_facts(samples.build(shape)))} == {"rate-too-low"}


def test_a_promise_that_was_missed_names_the_part():
    run = samples.build(samples.HEALTHY_TWO)
    assert run.prediction is not None
    step = replace(run.prediction.step, compute_seconds=0.05)
    found = find(gather_facts(replace(run, prediction=replace(run.prediction, step=step))))
    assert [finding.code for finding in found] == ["prediction-missed"]
    assert "The largest difference is computing" in found[0].evidence


def test_a_promise_that_only_disturbed_steps_missed_is_a_note():
    slow = replace(samples.HEALTHY_TWO, compute=lambda step, rank: 0.1 if step % 5 == 0 else 0.2)
    run = samples.build(slow)
    assert run.prediction is not None
    step = replace(run.prediction.step, compute_seconds=0.1)
    found = find(gather_facts(replace(run, prediction=replace(run.prediction, step=step))))
    assert [(finding.code, finding.level) for finding in found] == [("prediction-missed", "note")]


def test_every_code_has_its_place_in_the_documentation():
    from pathlib import Path

    from dragoman.diagnose.rules import RULES

    page = (Path(__file__).parents[3] / "docs" / "findings.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert f"\n## {rule.__name__.replace('_', '-')}\n" in page
