"""What was learned, side by side: at equal tokens and time, sentence by sentence, and where it must not be compared."""

from dataclasses import replace

import pytest

import diagnose_samples as samples
from diagnose_samples import Shape
from dragoman.diagnose.comparison.compare import RunComparison, compare_runs
from dragoman.diagnose.comparison.figures import Figure
from dragoman.run.reader import RunRecord

PLAIN = Shape(num_steps=80, eval_every=20)
WORSE = replace(PLAIN, dev_loss=lambda step: 1.6 + 6 * (1 + step / 20) ** -0.8, known_words=lambda step: step / 400)


def compare(*runs: RunRecord) -> RunComparison:
    return compare_runs(["a", "b", "c"][: len(runs)], runs)


def figure(comparison: RunComparison, start: str) -> Figure:
    return next(entry for entry in comparison.figures if entry.name.startswith(start))


def names(comparison: RunComparison) -> list[str]:
    return [entry.name for entry in comparison.figures]


def test_loss_at_equal_tokens_is_that_of_the_shorter_run():
    longer = samples.build(replace(PLAIN, num_steps=160, eval_every=20))
    comparison = compare(samples.build(PLAIN), longer)
    row = figure(comparison, "dev loss after 80,000 target tokens")
    assert row.values == (PLAIN.dev_loss(80), PLAIN.dev_loss(80))
    assert row.is_between == (False, False)


def test_between_evaluations_the_line_is_read_and_marked():
    other = samples.build(replace(PLAIN, num_steps=100, eval_every=50))
    comparison = compare(samples.build(PLAIN), other)
    row = figure(comparison, "dev loss after 80,000")
    assert row.values[1] == pytest.approx(PLAIN.dev_loss(50) * 0.4 + PLAIN.dev_loss(100) * 0.6)
    assert row.is_between == (False, True)
    assert "read between evaluations" in comparison.verdicts[0].quality


def test_equal_time_favours_the_faster_run():
    slow = samples.build(replace(PLAIN, compute=lambda step, rank: 0.4))
    comparison = compare(samples.build(PLAIN), slow)
    assert len(set(figure(comparison, "dev loss after 80,000 target").values)) == 1
    at_time = next(entry for entry in comparison.figures if entry.name.endswith("of training"))
    # Four times slower: at the fast run's end the slow one is between its first two evaluations, or before them.
    assert at_time.values[0] is not None and at_time.values[1] is not None
    assert at_time.values[1] > at_time.values[0]


def test_time_is_that_of_steps_without_evaluations():
    lavish = samples.build(replace(PLAIN, validation_seconds=60.0))
    comparison = compare(samples.build(PLAIN), lavish)
    at_time = next(entry for entry in comparison.figures if entry.name.endswith("of training"))
    assert at_time.values[1] == pytest.approx(at_time.values[0], rel=0.01)


def test_a_run_whose_first_evaluation_comes_later_has_no_common_point():
    late = samples.build(replace(PLAIN, num_steps=200, eval_every=100))
    comparison = compare(samples.build(PLAIN), late)
    assert "no amount of target tokens" in comparison.verdicts[0].quality.lower()
    assert not [name for name in names(comparison) if name.startswith("dev loss after")]


def test_a_difference_beyond_chance_is_called_so_with_the_setting_that_differs():
    other = samples.build(replace(WORSE, optim={**PLAIN.optim, "learning_rate": 0.03}))
    comparison = compare(samples.build(PLAIN), other)
    found = {item.name: item for item in comparison.paired}
    assert list(found) == ["dev loss", "BLEU", "chrF", "TER"]
    loss = found["dev loss"]
    assert loss.at == "equal tokens" and loss.steps == (80, 80)
    assert loss.low < 0.5 < loss.high and loss.is_beyond_chance
    assert found["BLEU"].delta < 0 and found["BLEU"].is_beyond_chance and found["BLEU"].other < found["BLEU"].reference
    assert comparison.verdicts[0].quality.endswith("; the learning rate differs (0.03 against 0.003).")
    assert "beyond chance" in comparison.verdicts[0].quality


def test_the_same_curve_is_no_difference():
    comparison = compare(samples.build(PLAIN), samples.build(PLAIN))
    assert "the very same dev loss" in comparison.verdicts[0].quality
    assert not any(item.is_beyond_chance for item in comparison.paired)


def test_other_dev_sentences_are_not_compared():
    run = samples.build(PLAIN)
    foreign = {
        key: [replace(item, reference=f"{item.reference}!") for item in rows] for key, rows in run.sentences.items()
    }
    comparison = compare(run, replace(run, sentences=foreign))
    assert "not comparable: the dev sets hold different sentences (dev)" in comparison.verdicts[0].quality
    assert comparison.paired == ()
    assert not [name for name in names(comparison) if "after" in name]


def test_other_data_make_losses_incomparable_but_not_bleu():
    run = samples.build(PLAIN)
    other = samples.build(WORSE)
    data = replace(other.manifest.data, fingerprint="feedbeef" * 4)
    comparison = compare(run, replace(other, manifest=replace(other.manifest, data=data)))
    text = comparison.verdicts[0].quality
    assert "not comparable: the prepared data differ (fingerprints 70a444f5 and feedbeef)" in text
    assert "best BLEU" in text
    assert not [name for name in names(comparison) if name.startswith("dev loss after")]
    assert [item.name for item in comparison.paired] == ["BLEU", "chrF", "TER"]
    assert "training data" in [row.key for row in comparison.settings]


def test_dev_sets_that_were_not_kept_are_the_same_only_under_one_fingerprint_and_size():
    run = replace(samples.build(PLAIN), sentences={})
    assert figure(compare(run, run), "dev loss after 80,000").values[1] is not None
    fewer = replace(run, evals=tuple(replace(record, num_sentences=90) for record in run.evals))
    assert "differ or were not kept (dev; 120 and 90 sentences)" in compare(run, fewer).verdicts[0].quality


def test_bleu_of_two_signatures_is_not_compared():
    run = samples.build(PLAIN)
    other = replace(run, evals=tuple(replace(record, bleu_signature="tok:zh") for record in run.evals))
    assert [item.name for item in compare(run, other).paired] == ["dev loss"]


def test_a_run_without_evaluations():
    run = samples.build(PLAIN)
    bare = replace(run, evals=(), sentences={})
    for runs in ((run, bare), (bare, run)):
        text = compare(*runs).verdicts[0].quality
        assert text.startswith("Quality cannot be compared: ") and "has no evaluation" in text


def test_losses_that_are_no_numbers_are_left_out_and_counted():
    run = samples.build(PLAIN)
    evals = (*run.evals[:-1], replace(run.evals[-1], loss=float("nan")))
    steps = (*run.steps[:-1], replace(run.steps[-1], loss=float("nan"), nll=float("nan")))
    comparison = compare(run, replace(run, evals=evals, steps=steps))
    assert figure(comparison, "dev loss after 60,000").values[1] == PLAIN.dev_loss(60)
    assert "b has 1 evaluation whose loss is no number; left out." in comparison.notes
    assert "b's training loss is no number in 1 step, from step 80 on." in comparison.notes


def test_a_run_that_did_not_finish_is_noted():
    crashed = samples.build(replace(PLAIN, attempts=((1, 50),), is_finished=False))
    comparison = compare(samples.build(PLAIN), crashed)
    assert "b has not finished: its records end at step 50 of 80." in comparison.notes
    assert figure(comparison, "dev loss after 40,000").values == (PLAIN.dev_loss(40), PLAIN.dev_loss(40))


def test_cost_and_cost_per_point_where_a_price_is_known():
    priced = samples.build(replace(PLAIN, price_per_hour=7.2))
    comparison = compare(priced, samples.build(PLAIN))
    seconds = figure(comparison, "whole run").values[0]
    cost = figure(comparison, "cost")
    assert seconds is not None and cost.values == (pytest.approx(seconds * 0.002), None)
    assert cost.unit == "$"
    bleu = figure(comparison, "best BLEU").values[0]
    assert figure(comparison, "cost per BLEU point").values[0] == pytest.approx(seconds * 0.002 / bleu)
    assert "cost" not in names(compare(samples.build(PLAIN), samples.build(PLAIN)))


def test_beams_that_differ_are_noted():
    run = samples.build(PLAIN)
    recipe = {**run.manifest.recipe, "evaluate": {**run.manifest.recipe["evaluate"], "beam": 4}}
    comparison = compare(run, replace(run, manifest=replace(run.manifest, recipe=recipe)))
    assert "BLEU was decoded with beam 1 in a and beam 4 in b." in comparison.notes


def test_of_three_runs_the_shortest_sets_the_common_point():
    lengths = (160, 80, 120)
    runs = [samples.build(replace(PLAIN, num_steps=length)) for length in lengths]
    assert figure(compare(*runs), "dev loss after 80,000").values == (PLAIN.dev_loss(80),) * 3
