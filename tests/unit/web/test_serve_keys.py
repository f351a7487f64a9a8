"""Who may ask, and how often."""

import pytest

from dragoman.errors import DragomanError
from dragoman.web.serve import rate as rates
from dragoman.web.serve.keys import Keys, read_keys
from dragoman.web.serve.problem import Problem
from dragoman.web.serve.rate import Rate, RateLimit, client_of, parse_rate


def status_of(check, *arguments):
    try:
        check(*arguments)
    except Problem as problem:
        return problem.status
    return 200


def test_keys_of_a_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# ours\nalpha\n\n  beta  # of a friend\n", encoding="utf-8")
    keys = read_keys(path)
    assert keys.are_needed
    given = {"alpha": 200, "beta": 200, "gamma": 403, "": 403, None: 403, "alpha ": 403, "# ours": 403, "\ud800": 403}
    assert {key: status_of(keys.check, key) for key in given} == given
    assert "alpha" not in str(vars(keys)), "only hashes are kept"


def test_without_keys_everybody_may_ask():
    assert not Keys().are_needed and status_of(Keys().check, None) == status_of(Keys().check, "any") == 200


def test_a_file_of_keys_that_is_none(tmp_path):
    (tmp_path / "empty").write_text("# nothing\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name, words in (("empty", "has no key"), ("bytes", "UTF-8"), ("missing", "cannot read")):
        with pytest.raises(DragomanError, match=words):
            read_keys(tmp_path / name)


def test_a_rate():
    now = [0.0]
    limit = RateLimit(Rate(3, 60.0), clock=lambda: now[0])
    assert [status_of(limit.check, "a") for _ in range(4)] == [200, 200, 200, 429]
    assert status_of(limit.check, "b") == 200, "others have their own"
    with pytest.raises(Problem) as refused:
        limit.check("a")
    assert refused.value.headers["Retry-After"] == "20"
    now[0] = 20.1
    assert [status_of(limit.check, "a") for _ in range(2)] == [200, 429]
    now[0] = 10_000.0
    assert [status_of(limit.check, "a") for _ in range(4)] == [200, 200, 200, 429], "no more than a full bucket"


def test_many_clients_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(rates, "MAX_BUCKETS", 10)
    limit = RateLimit(Rate(1, 60.0), clock=lambda: 0.0)
    for number in range(100):
        limit.check(str(number))
    assert len(limit._buckets) == 10 and status_of(limit.check, "99") == 429


def test_no_rate_is_no_limit():
    limit = RateLimit(None)
    assert all(status_of(limit.check, "a") == 200 for _ in range(100))


def test_who_a_client_is():
    assert client_of("10.0.0.1", None) == "10.0.0.1" != client_of("10.0.0.2", None)
    assert client_of("2001:db8::1", None) == client_of("2001:db8::2", None) != client_of("2001:db9::1", None)
    assert client_of("10.0.0.1", "key") == client_of("10.0.0.2", "key") != client_of("10.0.0.1", "other")
    assert "key5" not in client_of("10.0.0.1", "key5")
    assert client_of("testclient", None) == "testclient"


def test_rates_as_they_are_written():
    assert parse_rate("60/min") == Rate(60, 60.0)
    assert parse_rate("5/s") == Rate(5, 1.0) and parse_rate("1000/h") == Rate(1000, 3600.0)
    for text in ("60", "0/min", "-1/s", "x/min", "5/day", "/s", ""):
        with pytest.raises(DragomanError, match="not a rate"):
            parse_rate(text)
