import math

import numpy as np
import pytest
from report_network_samples import TRANSFER, write_network_run
from report_samples import write_sample_run

from dragoman.diagnose.facts import gather_facts
from dragoman.report.series import buckets_of, histogram, length_bins, spread, time_shares
from dragoman.run.reader import read_run
from dragoman.run.records import EvalSentence


def buckets(values, **options):
    return buckets_of(np.arange(1.0, len(values) + 1), np.array(values, dtype=float), **options)


def test_buckets_keep_the_extremes_and_the_end():
    found = buckets([5.0] * 999 + [100.0], max_buckets=10)
    assert len(found) == 10
    assert (found[-1].x, found[-1].low, found[-1].high) == (1000, 5.0, 100.0)
    assert found[-1].mean == pytest.approx(5.95)


def test_a_short_series_is_drawn_as_it_is():
    assert [(bucket.x, bucket.mean) for bucket in buckets([3.0, 2.0, 1.0])] == [(1, 3.0), (2, 2.0), (3, 1.0)]
    assert buckets([]) == []


def test_a_last_bucket_that_is_not_full_counts_its_own_alone():
    found = buckets([1.0] * 7 + [9.0], max_buckets=3)
    assert [bucket.mean for bucket in found] == [1.0, 1.0, 5.0]


def test_what_is_no_number_leaves_a_gap():
    assert [bucket.mean for bucket in buckets([1.0, math.nan, math.inf, 2.0])] == [1.0, None, None, 2.0]
    assert buckets([1.0, math.nan], max_buckets=1)[0].mean == 1.0


def test_the_histogram_counts_every_value_once():
    values = np.array([0.1 + 0.001 * number for number in range(1000)] + [50.0, math.nan])
    bins, num_beyond = histogram(values, num_bins=10)
    assert sum(entry.count for entry in bins) + num_beyond == 1001
    assert num_beyond >= 1
    assert bins[-1].end < 2


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5], [0.0]])
def test_equal_values_are_no_problem(values):
    bins, num_beyond = histogram(np.array(values))
    assert (sum(entry.count for entry in bins), num_beyond) == (len(values), 0)


def shares_of(run):
    facts = gather_facts(run)
    return {share.name: share for share in time_shares(facts.grid, facts.split)}


def test_time_shares_are_means_over_ranks_and_sum_to_one(sample_run):
    shares = shares_of(sample_run)
    assert sum(share.share for share in shares.values()) == pytest.approx(1)
    wall = sum(record.wall_seconds for record in sample_run.timings if record.rank == 0)
    assert sum(share.seconds for share in shares.values()) == pytest.approx(wall)
    assert time_shares(None, None) == []


def test_parts_that_took_no_time_are_left_out(tmp_path):
    shares = shares_of(read_run(write_sample_run(tmp_path / "run", 20, 100).path))
    assert "checkpoint" in shares  # of the last step
    assert "waiting" not in shares, "both ranks take as long for everything"


def test_the_exchange_is_split_into_waiting_and_transfer(tmp_path):
    shares = shares_of(read_run(write_network_run(tmp_path / "run", 20).path))
    assert "exchange" not in shares
    assert shares["transfer"].seconds == pytest.approx(20 * TRANSFER, rel=0.01)
    assert shares["waiting"].seconds == pytest.approx(20 * 0.75 * 0.02, rel=0.2)


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
