"""Limits that a user may set: numbers of seconds, and a wrong one is said once."""

import pytest

from dragoman.dist.limits import JOIN_SECONDS, MEASURE_SECONDS, check_limits, join_seconds, measure_seconds
from dragoman.errors import DragomanError

VARIABLES = {
    "DRAGOMAN_JOIN_SECONDS": (join_seconds, JOIN_SECONDS),
    "DRAGOMAN_MEASURE_SECONDS": (measure_seconds, MEASURE_SECONDS),
}


@pytest.mark.parametrize("variable", VARIABLES)
def test_what_is_not_set_is_as_usual(monkeypatch, variable):
    read, usual = VARIABLES[variable]
    monkeypatch.delenv(variable, raising=False)
    assert read() == usual
    monkeypatch.setenv(variable, "2.5")
    assert read() == 2.5


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("text", ["soon", "nan", "inf", "-inf", "0", "-3"])
def test_a_limit_is_a_number(monkeypatch, variable, text):
    monkeypatch.setenv(variable, text)
    with pytest.raises(DragomanError, match=f"{variable} is '{text}'"):
        check_limits()
