"""Steps left out in a row, and losses that spike: the pure parts."""

import math
import random

import pytest
import torch

from dragoman.train.numbers import NUM_TOTALS, WINDOW, Spikes, Streak, marks, origin_of


def sums(*norms: float, own: tuple[float, ...] = ()) -> list[float]:
    """As they arrive of one step, whose ranks had these norms, and these numbers before the exchange."""
    parts = [
        marks(torch.tensor(norm), torch.tensor(before), rank)
        for rank, (norm, before) in enumerate(zip(norms, own or norms, strict=True))
    ]
    totals = torch.zeros(NUM_TOTALS, dtype=torch.float64)
    totals[6:] = torch.stack(parts).sum(0)
    return totals.tolist()


GOOD, BAD = sums(1.0, 2.0), sums(1.0, math.nan)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_the_rank_is_named_where_one_alone_had_it(broken):
    assert origin_of(sums(broken, broken, own=(1.0, broken))) == 1
    assert origin_of(sums(broken, broken, own=(broken, 1.0))) == 0
    assert origin_of(sums(broken, broken, own=(broken, broken))) is None
    assert origin_of(sums(broken, broken, own=(1.0, 1.0))) is None, "it was the gradient alone"
    assert origin_of(GOOD) is None


def test_so_many_in_a_row_are_too_many_and_the_first_is_known():
    streak = Streak(10, 3)
    assert not streak.note([GOOD, BAD, BAD, GOOD])  # up to step 14
    assert not streak.note([])
    assert not streak.note([BAD, BAD])
    assert streak.note([BAD])
    assert (streak.first_step, streak.num_steps) == (15, 3)
    streak.restart(12)
    assert not streak.note([BAD, BAD])
    assert streak.note([BAD, BAD])
    assert streak.first_step == 13


def falling(num: int, noise: float = 0.03) -> list[float]:
    draw = random.Random(1)
    return [1.2 + 6 * (1 + step / 20) ** -0.8 + draw.gauss(0, noise) for step in range(num)]


def spikes_of(losses: list[float]) -> list[int]:
    spikes = Spikes()
    return [step for step, loss in enumerate(losses, start=1) if spikes.note(loss) is not None]


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.03, 0.3])
def test_a_loss_that_falls_with_noise_has_no_spike(noise):
    assert spikes_of(falling(2_000, noise)) == []


def test_a_clear_spike_is_found_once_with_what_was_usual():
    losses = falling(400)
    losses[299:305] = [5.0, 6.0, 4.0, 3.5, 3.2, 3.0]
    assert spikes_of(losses) == [300]
    spikes = Spikes()
    usual = [spikes.note(loss) for loss in losses][299]
    assert usual == pytest.approx(1.2 + 6 * (1 + 275 / 20) ** -0.8, abs=0.1)


def test_two_spikes_are_two_and_a_level_that_stays_becomes_usual():
    losses = falling(600)
    losses[299] = losses[349] = 5.0
    assert spikes_of(losses) == [300, 350]
    assert spikes_of([1.0, 1.01] * 100 + [3.0, 3.01] * 100) == [201]


def test_the_first_steps_and_what_is_no_number_are_no_spikes():
    assert spikes_of([2.0] * (WINDOW - 1) + [9.0]) == []
    assert spikes_of([2.0] * WINDOW + [9.0]) == [WINDOW + 1]
    assert spikes_of([2.0] * WINDOW + [math.nan, math.inf, 2.0]) == []
