import math

import pytest
from report_samples import sample_step, sample_timings

from dragoman.report.series import bucket_steps, histogram, length_bins, spread, time_shares
from dragoman.run.records import EvalSentence, StepRecord


def steps_with(losses):
    return [StepRecord(1, 0.0, number, loss, loss, 0.0, 0.0, 1, 1, 1, 1.0) for number, loss in enumerate(losses, 1)]


def test_buckets_keep_the_extremes_and_the_end():
    losses = [5.0] * 999 + [100.0]
    buckets = bucket_steps(steps_with(losses), lambda step: step.loss, max_buckets=10)
    assert len(buckets) == 10
    assert (buckets[-1].step, buckets[-1].low, buckets[-1].high) == (1000, 5.0, 100.0)
    assert buckets[-1].mean == pytest.approx(5.95)


def test_a_short_series_is_drawn_as_it_is():
    buckets = bucket_steps(steps_with([3.0, 2.0, 1.0]), lambda step: step.loss)
    assert [(bucket.step, bucket.mean) for bucket in buckets] == [(1, 3.0), (2, 2.0), (3, 1.0)]


def test_what_is_no_number_leaves_a_gap():
    buckets = bucket_steps(steps_with([1.0, math.nan, math.inf, 2.0]), lambda step: step.loss)
    assert [bucket.mean for bucket in buckets] == [1.0, None, None, 2.0]
    assert bucket_steps(steps_with([1.0, math.nan]), lambda step: step.loss, max_buckets=1)[0].mean == 1.0


def test_the_histogram_counts_every_value_once():
    values = [0.1 + 0.001 * number for number in range(1000)] + [50.0]
    bins, num_beyond = histogram(values, num_bins=10)
    assert sum(entry.count for entry in bins) + num_beyond == 1001
    assert num_beyond >= 1
    assert bins[-1].end < 2


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5], [0.0]])
def test_equal_values_are_no_problem(values):
    bins, num_beyond = histogram(values)
    assert (sum(entry.count for entry in bins), num_beyond) == (len(values), 0)


def test_time_shares_are_means_over_ranks_and_sum_to_one(sample_run):
    shares = time_shares(sample_run.timings)
    assert sum(share.share for share in shares) == pytest.approx(1)
    wall = sum(record.wall_seconds for record in sample_run.timings if record.rank == 0)
    assert sum(share.seconds for share in shares) == pytest.approx(wall)
    assert time_shares([]) == []


def test_parts_that_took_no_time_are_left_out():
    import random

    timings = sample_timings(sample_step(1, 1, 0.0, random.Random(1)), evaluates=False)
    assert "validation" not in {share.name for share in time_shares(timings)}


def test_length_bins_keep_equal_lengths_together():
    sentences = [
        EvalSentence(number, "", "", None, 2.0 * length, length) for number, length in enumerate([3] * 5 + [9])
    ]
    bins = length_bins(sentences, num_bins=3)
    assert [(entry.label, entry.loss) for entry in bins] == [("3", 2.0), ("9", 2.0)]
    assert length_bins([]) == []


@pytest.mark.parametrize(("count", "expected"), [(3, [1, 3, 5]), (1, [5]), (0, []), (9, [1, 2, 3, 4, 5]), (2, [1, 5])])
def test_spread_has_both_ends(count, expected):
    assert spread([1, 2, 3, 4, 5], count) == expected
