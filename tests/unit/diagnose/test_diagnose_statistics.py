"""The statistics behind verdicts find what is there and are quiet where there is only noise."""

import numpy as np
import pytest

from dragoman.diagnose.statistics import block_medians, find_break, forecast_gain, paired_ratio_change


def test_a_curve_is_continued_as_it_goes():
    steps = np.arange(1, 11) * 1_000.0
    losses = 1.5 + 40 * steps**-0.5
    gain = forecast_gain(steps, losses, 0.001)
    expected = 40 * (10_000**-0.5 - 15_000**-0.5)
    assert gain is not None
    assert gain.value == pytest.approx(expected, rel=0.1)
    assert gain.low <= expected <= gain.high


def test_noise_widens_the_forecast():
    steps = np.arange(1, 11) * 1_000.0
    losses = 1.5 + 40 * steps**-0.5
    noisy = losses + np.random.default_rng(3).normal(0, 0.02, 10)
    sharp, wide = forecast_gain(steps, losses, 0.0001), forecast_gain(steps, noisy, 0.0001)
    assert sharp is not None and wide is not None
    assert wide.high - wide.low > 3 * (sharp.high - sharp.low)


def test_a_flat_curve_promises_nothing_and_three_points_no_forecast():
    steps = np.arange(1, 9) * 100.0
    flat = forecast_gain(steps, np.full(8, 2.0), 0.001)
    assert flat is not None and flat.value < 0.001
    assert forecast_gain(steps[:3], np.array([3.0, 2.0, 1.5]), 0.001) is None


def test_paired_changes_are_sharper_than_the_spread_of_sentences():
    draw = np.random.default_rng(2)
    tokens = np.full(300, 10.0)
    before = 10 * draw.uniform(1, 5, 300)
    change = paired_ratio_change(before, before - 0.5, tokens)
    assert change is not None
    assert change.value == pytest.approx(-0.05) and change.is_below_zero
    same = paired_ratio_change(before, before + draw.normal(0, 3, 300), tokens)
    assert same is not None and same.low < 0 < same.high
    assert paired_ratio_change(before[:1], before[:1], tokens[:1]) is None


def test_a_break_is_found_where_it_is():
    draw = np.random.default_rng(4)
    series = np.concatenate([draw.normal(1, 0.1, 130), draw.normal(2, 0.1, 70)])
    found = find_break(series)
    assert found is not None and abs(found.index - 130) <= 1
    assert found.before == pytest.approx(1, abs=0.05) and found.after == pytest.approx(2, abs=0.05)
    assert find_break(series[:30]) is None


def test_blocks_pass_over_what_is_no_number():
    values = np.arange(40.0)
    values[3:9] = np.nan
    medians, starts = block_medians(values)
    assert list(starts) == [0, 10, 20, 30]
    assert medians[1] == 14.5 and np.isfinite(medians).all()
    assert len(block_medians(np.zeros(0))[0]) == 1
