"""Quantities as they are printed."""

import pytest

from dragoman import units


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (852_000_000, "852 MB"), (1.5e9, "1.5 GB"), (4e13, "40 TB")],
)
def test_bytes_are_decimal(num_bytes, text):
    assert units.format_bytes(num_bytes) == text


def test_bytes_just_below_the_next_unit_are_no_power_of_ten():
    assert "e+" not in units.format_bytes(999_900)


def test_both_units_stand_side_by_side():
    assert units.format_bytes_both(852_000_000) == "852.0 MB (812.5 MiB)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.414, "0.41 s"),
        (52.4, "52 s"),
        (59.7, "1 min 00 s"),
        (200, "3 min 20 s"),
        (3_599.6, "1 h 00 min"),
        (83_100, "23 h 05 min"),
    ],
)
def test_seconds_read_as_people_say_them(seconds, text):
    assert units.format_seconds(seconds) == text


def test_step_time_has_both_readings():
    assert units.format_step_time(0.2) == "0.2 s/step (5 steps/s)"
    assert units.format_step_time(29.6) == "29.6 s/step (0.0338 steps/s)"
    assert units.format_step_time(0) == "0 s/step (0 steps/s)"


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (1_204, "1,204"), (60_900_000, "60.9 M")])
def test_counts(number, text):
    assert units.format_count(number) == text


@pytest.mark.parametrize(
    ("bits_per_second", "text"),
    [(94.3e6, "94.3 Mb/s"), (1e9, "1 Gb/s"), (999.9e6, "1 Gb/s"), (5e5, "500 kb/s"), (2.4e12, "2,400 Gb/s")],
)
def test_link_speeds_as_ports_are_sold(bits_per_second, text):
    assert units.format_bit_rate(bits_per_second) == text


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (6_134.4, "$", "$6,134"),
        (12.4, "$", "$12.40"),
        (0, "€", "€0.00"),
        (-3, "$", "-$3.00"),
        (1_234, "EUR", "1,234 EUR"),
    ],
)
def test_money(amount, currency, text):
    assert units.format_money(amount, currency) == text


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(1, "step", "1 step"), (0, "step", "0 steps"), (1204, "step", "1,204 steps"), (1, "microbatch", "1 microbatch"),
     (8, "microbatch", "8 microbatches")],
)  # fmt: skip
def test_one_is_not_many(number, noun, text):
    assert units.plural(number, noun) == text
