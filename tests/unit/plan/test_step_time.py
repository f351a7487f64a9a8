"""The time of an exchange: what overlaps, what waits, and measured curves."""

import pytest

from dragoman.plan.step import exposed_seconds, faster, flow_of, for_ranks, sum_seconds
from dragoman.plan.traffic import Message, Traffic
from dragoman.run.promise import LinkProfile, SumTime

LINK = LinkProfile(100.0, 0.01)
CURVE = LinkProfile(100.0, 0.01, sums=(SumTime(100, 1.01), SumTime(1_000, 20.01)))


@pytest.mark.parametrize(
    ("ready", "seconds", "end", "expected"),
    [
        ([0.0], [4.0], 10.0, 0.0),  # hidden
        ([0.0], [12.0], 10.0, 2.0),
        ([10.0], [4.0], 10.0, 4.0),  # nothing is ready before the end
        ([2.0, 10.0], [3.0, 4.0], 10.0, 4.0),  # the last bucket alone is late
        ([2.0, 10.0], [9.0, 4.0], 10.0, 5.0),  # the first still travels when the last is ready
    ],
)
def test_messages_queue_and_what_is_left_after_the_backward_pass_waits(ready, seconds, end, expected):
    assert exposed_seconds(ready, seconds, 0.0, end) == pytest.approx(expected)


def test_gradients_overlap_with_the_last_backward_pass_alone():
    early, late = (Traffic((Message(500, ready_share=share),), "", num_waits=2) for share in (0.0, 1.0))
    assert flow_of(early, LINK, 2.0, 50.0).waiting_seconds == pytest.approx(3.02)
    assert flow_of(late, LINK, 2.0, 50.0).waiting_seconds == pytest.approx(5.02)


def test_rounds_that_wait_for_each_other_pay_their_latency_each():
    rounds = Traffic((Message(100), Message(100)), "", num_waits=3)
    assert flow_of(rounds, LINK, 9.0, 9.0).waiting_seconds == pytest.approx(2.03)


def test_what_travels_in_the_background_waits_only_for_what_exceeds_the_step():
    traffic = Traffic((Message(500),), "", True, 1)
    assert flow_of(traffic, LINK, 0.1, 6.0).waiting_seconds == 0.0
    assert flow_of(traffic, LINK, 0.1, 4.0).waiting_seconds == pytest.approx(1.01)
    # A longer flight hides latency; the link still carries one fragment a step.
    longer = Traffic((Message(500),), "", True, 3)
    assert flow_of(longer, LINK, 0.1, 4.0).waiting_seconds == pytest.approx(1.0)


@pytest.mark.parametrize(("num_bytes", "seconds"), [(0, 0.01), (50, 0.51), (100, 1.01), (550, 10.51), (1_000, 20.01)])
def test_a_measured_curve_is_followed(num_bytes, seconds):
    assert sum_seconds(CURVE, num_bytes) == pytest.approx(seconds)


def test_beyond_the_curve_its_last_slope_holds_but_no_burst_does():
    slope = 19 / 900
    assert sum_seconds(CURVE, 1_900) == pytest.approx(20.01 + 900 * slope)
    assert sum_seconds(CURVE, 1_900, least_slope=2 * slope) == pytest.approx(20.01 + 1_800 * slope)


def test_sums_follow_the_curve_and_gathers_the_rate():
    summed = Traffic((Message(500, 550, 1.0),), "", num_waits=1)
    assert flow_of(summed, CURVE, 1.0, 1.0).transfer_seconds == pytest.approx(10.51)
    gathered = Traffic((Message(500),), "", num_waits=1)
    assert flow_of(gathered, CURVE, 1.0, 1.0).transfer_seconds == pytest.approx(5.01)


def test_a_faster_link_keeps_its_latency():
    link = faster(CURVE, 10)
    assert link.bytes_per_second == 1_000
    assert [point.seconds for point in link.sums] == pytest.approx([0.11, 2.01])


def test_more_ranks_pass_more_bytes_on():
    """A ring of 2 sends 1 x the bytes, one of 4 sends 1.5 x."""
    link = for_ranks(CURVE, 2, 4)
    assert link.bytes_per_second == CURVE.bytes_per_second
    assert [point.seconds for point in link.sums] == pytest.approx([1.51, 30.01])
    assert for_ranks(CURVE, 2, 2) == CURVE
    assert for_ranks(CURVE, 1, 2).sums == ()
