import pytest

from dragoman.train import meter
from dragoman.train.meter import PHASES, Meter


def clock(monkeypatch, *times: float) -> None:
    ticks = iter(times)
    monkeypatch.setattr(meter.time, "perf_counter", lambda: next(ticks))


def test_phases_other_and_wall_add_up(monkeypatch):
    clock(monkeypatch, 100, 101, 103, 103, 104, 105, 106.5, 110)
    watch = Meter()
    for name in ("forward", "backward", "forward"):
        with watch.phase(name):
            pass
    parts = watch.take()
    assert (parts["forward"], parts["backward"], parts["data"]) == (3.5, 1, 0)
    assert (parts["other"], parts["wall"]) == (5.5, 10)
    assert sum(parts[name] for name in (*PHASES, "other")) == parts["wall"]


def test_taking_starts_anew(monkeypatch):
    clock(monkeypatch, 0, 1, 3, 4, 5)
    watch = Meter()
    with watch.phase("data"):
        pass
    watch.take()
    parts = watch.take()
    assert (parts["data"], parts["wall"]) == (0, 1)


def test_a_phase_that_fails_is_still_counted(monkeypatch):
    clock(monkeypatch, 0, 1, 5, 6)
    watch = Meter()
    with pytest.raises(ValueError, match="broken"), watch.phase("data"):
        raise ValueError("broken")
    assert watch.take()["data"] == 4
