"""Link speeds as people write them."""

import pytest

from dragoman.errors import DragomanError
from dragoman.launch.lab.link import Link, describe_rate, parse_delay, parse_link, parse_rate, token_bucket


@pytest.mark.parametrize(
    ("text", "bits_per_second"),
    [("100mbit", 10**8), ("1Gbit", 10**9), ("2.5gbit", 2_500_000_000), ("300 kbit", 300_000), ("unlimited", None)],
)
def test_speeds(text, bits_per_second):
    assert parse_rate(text) == bits_per_second


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("100", "has no unit"),
        ("100mbps", "unit of '100mbps' is not known"),  # megabytes for tc, megabits for everybody else
        ("100mb/s", "is not known"),
        ("fast", "is no link speed"),
        ("-1mbit", "is no link speed"),
        ("", "is no link speed"),
        ("0mbit", "cannot be emulated"),
        ("1000gbit", "cannot be emulated"),
    ],
)
def test_what_is_no_speed_is_refused_with_an_example(text, message):
    with pytest.raises(DragomanError, match=message) as caught:
        parse_rate(text)
    assert caught.value.hint


def test_one_speed_or_from_and_to():
    assert parse_link("100mbit") == Link(10**8, 10**8)
    assert parse_link("100mbit/20mbit") == Link(10**8, 2 * 10**7)
    assert parse_link("unlimited/1gbit") == Link(None, 10**9)
    assert parse_link("100mbit", is_sum=True) == Link(10**8, 10**8, is_sum=True)


@pytest.mark.parametrize("text", ["100mbit/20mbit", "unlimited"])
def test_a_sum_needs_one_speed(text):
    with pytest.raises(DragomanError, match="--sum needs one speed"):
        parse_link(text, is_sum=True)


def test_delays():
    assert (parse_delay("10ms"), parse_delay("500us"), parse_delay("0.1s")) == pytest.approx((0.01, 0.0005, 0.1))
    for text in ("10", "10min", "ms", "1h"):
        with pytest.raises(DragomanError, match="is no delay"):
            parse_delay(text)
    with pytest.raises(DragomanError, match="cannot be emulated"):
        parse_delay("6s")


def test_descriptions_have_units():
    assert [describe_rate(rate) for rate in (150_000, 10**8, 2_500_000_000, None)] == [
        "150 kb/s",
        "100 Mb/s",
        "2.5 Gb/s",
        "unlimited",
    ]
    assert parse_link("100mbit/20mbit").describe() == "link of 100 Mb/s from each host and 20 Mb/s to it"
    assert parse_link("100mbit", is_sum=True).describe() == "100 Mb/s link (both directions together)"


def test_a_bucket_holds_a_large_packet_and_what_a_slow_timer_misses():
    assert token_bucket(20 * 10**6) == "tbf rate 20000000bit burst 65536 latency 50ms"
    assert token_bucket(10**9) == "tbf rate 1000000000bit burst 1000000 latency 20ms"
