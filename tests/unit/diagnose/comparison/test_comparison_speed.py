"""The one sentence on what explains the difference, on made-up runs of which it is known."""

import random
from dataclasses import replace

import pytest

import diagnose_samples as samples
from diagnose_samples import Shape
from dragoman.diagnose.comparison.compare import RunComparison, compare_runs
from dragoman.diagnose.comparison.side import PARTS, Side, side_of
from dragoman.diagnose.comparison.speed import part_differences, unit_of
from dragoman.diagnose.facts import gather_facts
from dragoman.run.reader import RunRecord

FAST = Shape(num_hosts=2, num_steps=80, eval_every=20, transfer=lambda step: 0.04, capacity=117.5e6, alone=117.5e6)
SLOW_LINK = replace(FAST, transfer=lambda step: 0.4, capacity=11.75e6, alone=11.75e6)


def compare(first: RunRecord, second: RunRecord) -> RunComparison:
    return compare_runs(["a", "b"], [first, second])


def explain(first: Shape | RunRecord, second: Shape | RunRecord) -> str:
    runs = [samples.build(entry) if isinstance(entry, Shape) else entry for entry in (first, second)]
    return compare(*runs).verdicts[0].explanation


def side(shape: Shape, name: str = "a") -> Side:
    return side_of(name, gather_facts(samples.build(shape)))


def with_exchange(run: samples.MemoryRun, **settings: object) -> samples.MemoryRun:
    exchange = run.manifest.exchange
    assert exchange is not None
    changed = replace(exchange, settings={**exchange.settings, **settings})
    return replace(run, manifest=replace(run.manifest, exchange=changed))


def with_settings(run: samples.MemoryRun, section: str, **values: object) -> samples.MemoryRun:
    recipe = {**run.manifest.recipe, section: {**run.manifest.recipe[section], **values}}
    return replace(run, manifest=replace(run.manifest, recipe=recipe))


def test_a_slower_link():
    text = explain(FAST, SLOW_LINK)
    assert text.startswith("b is 3.")
    assert "times slower per step than a (0." in text
    assert "nearly all of the difference is transfer, because its link carries 94 Mb/s and a's 940 Mb/s" in text


def test_the_same_the_other_way_round():
    text = explain(SLOW_LINK, FAST)
    assert "times faster per step than a" in text
    assert "nearly all of the difference is transfer, because its link carries 940 Mb/s and a's 94 Mb/s" in text


def test_a_straggler_is_no_slow_computing():
    text = explain(FAST, replace(FAST, compute=lambda step, rank: 0.1 + 0.15 * rank))
    assert " of the difference is waiting for the slowest rank, because its rank 1 on b is last in " in text
    assert "it computes 0.2" in text and "the others 0.1" in text
    share = float(text.partition("step): ")[2].split(" %")[0]) if "nearly" not in text else 100
    assert share > 85


def test_a_straggler_of_the_reference_is_named_as_its():
    text = explain(replace(FAST, compute=lambda step, rank: 0.1 + 0.15 * rank), FAST)
    assert "waiting for the slowest rank, because a's rank 1 on b is last" in text


def test_a_host_that_waits_for_its_data_holds_up_the_others():
    text = explain(FAST, replace(FAST, data=lambda step, rank: 0.15 * rank))
    assert "waiting for the slowest rank" in text and "it waits for data and computes 0.2" in text


def test_input_bound():
    text = explain(Shape(num_steps=80), replace(samples.INPUT_BOUND))
    assert "of the difference is waiting for data, because it waits for batches that are not ready" in text


def test_another_method_sends_fewer_bytes():
    small = replace(SLOW_LINK, transfer=lambda step: 0.02, sent_bytes=150_000)
    text = explain(samples.build(SLOW_LINK), with_exchange(samples.build(small), method="diloco", every_steps=4))
    assert "times faster per step than a" in text
    assert "transfer, because it sends 153 kB a step (diloco fp32 every 4) and a 4.82 MB (dense fp32)" in text


def test_more_ranks():
    more = Shape(ranks_per_host=4, num_steps=80, compute=lambda step, rank: 0.05)
    text = explain(Shape(ranks_per_host=2, num_steps=80), more)
    assert "faster per step than a" in text
    assert "computing, because it spreads a step over 4 ranks and a over 2" in text


def test_more_ranks_whose_transfer_eats_the_gain_are_told_part_by_part():
    more = Shape(ranks_per_host=4, num_steps=80, compute=lambda step, rank: 0.05, transfer=lambda step: 0.025)
    text = explain(Shape(ranks_per_host=2, num_steps=80), more)
    assert "less, because it spreads a step over 4 ranks and a over 2, and transfer takes 2" in text
    assert "of the difference" not in text


def test_a_second_host_brings_the_link_in():
    text = explain(Shape(ranks_per_host=2, num_steps=80), SLOW_LINK)
    assert "transfer, because its ranks are on 2 hosts joined by 94 Mb/s, and a's on one" in text


def test_links_that_were_measured_alike_are_no_cause():
    text = explain(FAST, replace(FAST, transfer=lambda step: 0.4))
    assert "transfer, though links and bytes are alike: b's link may have been slower or shared" in text


def test_slower_computing_that_no_setting_explains_is_said_to_be_so():
    text = explain(FAST, replace(FAST, compute=lambda step, rank: 0.2))
    assert "computing, which no setting explains: look for other load or lower clocks on b's machines" in text


def test_a_larger_model():
    run = samples.build(replace(FAST, compute=lambda step, rank: 0.3))
    large = replace(run, manifest=replace(run.manifest, num_parameters=60_900_000))
    assert "because its model has 60.9 M parameters and a's 1.2 M" in explain(samples.build(FAST), large)


def test_a_learning_rate_alone():
    run = samples.build(FAST)
    text = explain(run, with_settings(samples.build(replace(FAST, noise=0.13)), "optim", learning_rate=0.006))
    assert text.startswith("b and a have the same speed within noise (0.1")
    assert text.endswith("; the learning rate differs (0.006 against 0.003).")


def test_a_learning_rate_comes_before_settings_of_the_machines():
    run = samples.build(FAST)
    other = with_settings(samples.build(FAST), "optim", learning_rate=0.006, warmup_steps=9)
    text = explain(run, replace(other, manifest=replace(other.manifest, precision="bf16")))
    assert text.index("the learning rate (0.006 against 0.003)") < text.index("the warm-up")


def test_identical_runs_are_too_alike():
    text = explain(FAST, FAST)
    assert "too alike to tell apart: no setting that matters differs, and the step times are within noise" in text


@pytest.mark.parametrize("seed", range(3))
def test_chance_alone_is_no_difference(monkeypatch, seed):
    first = samples.build(FAST)
    monkeypatch.setattr(samples.random, "Random", lambda number, kind=random.Random: kind(1000 * seed + number))
    assert "too alike" in explain(first, samples.build(FAST))


def test_a_slow_patch_of_one_run_is_noise_and_a_slowness_of_all_its_steps_is_not():
    patchy = replace(FAST, compute=lambda step, rank: 0.2 if 30 <= step < 45 else 0.1)
    assert "too alike" in explain(FAST, patchy)
    assert "slower per step" in explain(FAST, replace(FAST, compute=lambda step, rank: 0.12))


def test_settings_that_change_nothing_do_not_make_runs_unlike():
    run = with_settings(samples.build(FAST), "evaluate", every_steps=7)
    comparison = compare(samples.build(FAST), run)
    assert "too alike" in comparison.verdicts[0].explanation
    assert [row.key for row in comparison.settings] == ["evaluate.every_steps"]


def test_the_same_speed_with_parts_that_moved_is_told():
    text = explain(FAST, replace(FAST, compute=lambda step, rank: 0.06, transfer=lambda step: 0.082))
    assert "same speed within noise" in text
    assert ", though " in text and "transfer takes" in text and "computing takes" in text


def test_parts_sum_to_the_step_and_differences_to_the_difference():
    one, other = side(FAST), side(SLOW_LINK, "b")
    assert one.parts is not None and tuple(one.parts) == PARTS
    assert sum(one.parts.values()) == pytest.approx(one.facts.steps.seconds[2:].mean(), rel=0.02)
    deltas = part_differences(one, other, unit_of(one, other))
    assert sum(deltas.values()) == pytest.approx((other.step_seconds or 0) - (one.step_seconds or 0))


def test_steps_of_other_sizes_are_compared_per_token():
    run = samples.build(replace(FAST, compute=lambda step, rank: 0.2, transfer=lambda step: 0.04))
    steps = tuple(replace(step, target_tokens=2_000) for step in run.steps)
    comparison = compare(samples.build(FAST), replace(run, steps=steps))
    text = comparison.verdicts[0].explanation
    assert "faster per target token than a" in text and "per 1,000 target tokens)" in text
    assert "because its step holds 2,000 target tokens and a's 1,000" in text
    assert "Steps differ in size, so speed is compared per target token." in comparison.notes


def test_missing_timings_leave_the_difference_unexplained():
    bare = replace(samples.build(SLOW_LINK), timings=())
    comparison = compare(samples.build(FAST), bare)
    assert "where the time went was not recorded for b" in comparison.verdicts[0].explanation
    assert "b has no timing lines: where its time went is not known." in comparison.notes


def test_too_few_steps_say_nothing():
    run = samples.build(FAST)
    short = replace(run, steps=run.steps[:2], timings=(), evals=())
    assert explain(run, short).startswith("b cannot be compared for speed: it has 2 steps")
    assert explain(run, replace(short, steps=())).startswith("b cannot be compared for speed: it has 0 steps")


def test_every_run_is_set_against_the_first():
    runs = [samples.build(shape) for shape in (FAST, SLOW_LINK, FAST)]
    comparison = compare_runs(["a", "b", "c"], runs)
    assert [verdict.run for verdict in comparison.verdicts] == ["b", "c"]
    assert "b is 3." in comparison.verdicts[0].explanation
    assert "too alike" in comparison.verdicts[1].explanation
    assert [row.key for row in comparison.settings] == ["link"]
    assert all(len(figure.values) == 3 for figure in comparison.figures)
