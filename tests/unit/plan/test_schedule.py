"""The learning rate as a formula."""

import itertools
import math

import pytest

from dragoman.config import OptimConfig
from dragoman.plan.schedule import lr_at


def rates(max_steps: int = 1_000, **settings) -> list[float]:
    """Index = step; the rate of step 0 is never used."""
    config = OptimConfig(**settings)
    return [math.nan, *(lr_at(step, config, 512, max_steps) for step in range(1, max_steps + 1))]


def test_transformer_is_the_published_formula():
    config = OptimConfig(schedule="transformer", learning_rate=2.0, warmup_steps=8_000)
    for step in (1, 100, 7_999, 8_000, 8_001, 50_000, 300_000):
        published = 2.0 * 512**-0.5 * min(step**-0.5, step * 8_000**-1.5)
        assert lr_at(step, config, 512, 50_000) == pytest.approx(published, rel=1e-12)


def test_transformer_does_not_depend_on_the_length_of_the_run():
    config = OptimConfig()
    assert lr_at(9_000, config, 512, 10_000) == lr_at(9_000, config, 512, 1_000_000)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "wsd"])
@pytest.mark.parametrize("final_share", [0.0, 0.1])
def test_the_others_rise_to_the_rate_and_end_at_their_share_of_it(schedule, final_share):
    curve = rates(schedule=schedule, learning_rate=3e-3, warmup_steps=100, final_share=final_share)
    assert curve[1] == pytest.approx(3e-5)
    assert curve[50] == pytest.approx(1.5e-3)
    assert curve[100] == pytest.approx(3e-3)
    assert curve[1_000] == pytest.approx(3e-3 * final_share, abs=1e-12)
    assert max(curve[1:]) == pytest.approx(3e-3)
    assert all(a >= b for a, b in itertools.pairwise(curve[100:]))


def test_linear_is_half_way_down_in_the_middle():
    assert rates(schedule="linear", learning_rate=1.0, warmup_steps=100, final_share=0.2)[550] == pytest.approx(0.6)


def test_cosine_is_half_way_down_in_the_middle_and_flat_at_both_ends():
    curve = rates(schedule="cosine", learning_rate=1.0, warmup_steps=100)
    assert curve[550] == pytest.approx(0.5)
    assert curve[325] == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert 1 - curve[101] < 1e-5
    assert curve[999] < 1e-5


def test_wsd_stays_at_the_peak_until_its_share_of_the_run_is_left():
    curve = rates(schedule="wsd", learning_rate=1.0, warmup_steps=100, decay_share=0.2)
    assert set(curve[100:801]) == {1.0}
    assert curve[801] < 1.0
    assert curve[900] == pytest.approx(0.5)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "wsd"])
def test_a_run_shorter_than_its_warm_up_only_rises(schedule):
    curve = rates(schedule=schedule, learning_rate=1.0, warmup_steps=200, max_steps=50)
    assert curve[50] == pytest.approx(0.25)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "wsd"])
def test_beyond_its_last_step_the_rate_stays_low(schedule):
    config = OptimConfig(schedule=schedule, learning_rate=1.0, warmup_steps=10, final_share=0.1)
    assert lr_at(150, config, 512, 100) == pytest.approx(0.1)
