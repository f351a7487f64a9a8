"""Long curves in few buckets."""

import math

import pytest

from dragoman.web.watch.curve import Curve


def test_a_short_curve_is_kept_as_it_is():
    curve = Curve()
    for step, loss in enumerate((4.0, math.nan, 2.0), start=1):
        curve.add(step, loss)
    assert curve.points() == [(1, 4.0, 4.0, 4.0), (3, 2.0, 2.0, 2.0)]


def test_a_long_curve_has_few_points_that_stand_for_all_values():
    curve = Curve(max_buckets=10)
    for step in range(1000):
        curve.add(step, step % 2)
    points = curve.points()
    assert len(points) == 8, "of 128 values each"
    assert points[-1][0] == 999
    for _, low, mean, high in points:
        assert (low, high) == (0, 1)
        assert mean == pytest.approx(0.5, abs=0.02)


def test_what_is_done_again_is_forgotten():
    curve = Curve(max_buckets=100)
    for step in range(1, 61):
        curve.add(step, 9.0)
    curve.cut(41)
    for step in range(41, 51):
        curve.add(step, 1.0)
    points = curve.points()
    assert [point[0] for point in points] == list(range(1, 51))
    assert {point[2] for point in points[40:]} == {1.0}
