"""What a network card says of itself, and how far hosts' clocks are apart."""

import threading
import time
from types import SimpleNamespace

import pytest

from dragoman.dist import card, clock
from thread_worlds import run_ranks


@pytest.mark.parametrize(
    ("is_device", "megabits", "speed"),
    [
        (True, 1_000, 10**9),
        (False, 10_000, None),  # software makes its number up
        (True, 0, None),  # the driver does not say
        (True, 65_535, None),  # the kernel's word for unknown
    ],
)
def test_only_a_devices_own_word_counts(tmp_path, monkeypatch, is_device, megabits, speed):
    (tmp_path / "eth0").mkdir()
    if is_device:
        (tmp_path / "eth0" / "device").mkdir()
    monkeypatch.setattr(card, "CARDS", tmp_path)
    monkeypatch.setattr(card.psutil, "net_if_stats", lambda: {"eth0": SimpleNamespace(speed=megabits)})
    assert card.card_speed("eth0") == speed
    assert card.card_speed("gone") is None
    assert card.claimed_speed("eth0") == (10**10 if megabits == 10_000 else speed), "what is made up is a claim too"


def test_a_host_whose_clock_is_ahead_is_found_out(monkeypatch):
    ahead = threading.local()
    real = time.time
    monkeypatch.setattr(clock.time, "time", lambda: real() + getattr(ahead, "seconds", 0.0))

    def compare(world):
        world.host = "ab"[world.rank]
        ahead.seconds = 7.5 * world.rank
        return clock.clock_offsets(world)

    for offsets in run_ranks(2, compare):
        assert offsets["a"] == 0
        assert offsets["b"] == pytest.approx(7.5, abs=0.5)
