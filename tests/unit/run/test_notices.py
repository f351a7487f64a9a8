"""Word of a run to a web address: what is sent, what is kept secret, and what a failure costs (nothing)."""

import os
import socket
import subprocess
import sys
import time

import pytest

from dragoman.errors import DragomanError
from dragoman.run import notices
from dragoman.run.notices import VARIABLE, Notices, check_address, masked_address, masked_words, notices_to
from web_hook import web_hook

SECRETS = ("SECRET", "HIDDEN", "me", "pass")


def started(url: str | None, warnings: list[str]) -> Notices:
    return Notices(url, "mine", "a", warnings.append)


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("https://hooks.slack.com/services/T0/B1/SECRET", "https://hooks.slack.com/..."),
        ("https://me:pass@hooks.example.com:8443/x?token=HIDDEN#y", "https://hooks.example.com/..."),
        ("http://[::1]:80/SECRET", "http://::1/..."),
        ("SECRET", "..."),
        ("http://[SECRET", "..."),
    ],
)
def test_only_scheme_and_host_of_an_address_are_shown(url, masked):
    assert masked_address(url) == masked


def test_a_command_line_is_kept_without_secrets():
    words = ["train", "--notify", "https://h.com/SECRET", "--notify=https://me:pass@h.com/x", "--run", "runs/--notify"]
    mirror = ["--mirror", "ftp://me:pass@host/path", "--set", "about=mail me@example.com", "--data", "a:b"]
    assert masked_words([*words, *mirror]) == [
        *("train", "--notify", "https://h.com/...", "--notify=https://h.com/...", "--run", "runs/--notify"),
        *("--mirror", "ftp://...@host/path", "--set", "about=mail me@example.com", "--data", "a:b"),
    ]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://me:pass@host/SECRET",
        "file:///etc/SECRET",
        "SECRET",
        "https:///SECRET",
        "http://host:no/SECRET",
        "http://host/a SECRET",
        "http://host/\nSECRET",
        "http://[SECRET",
        "",
    ],
)
def test_what_is_no_web_address_is_refused_without_its_secrets(url):
    with pytest.raises(DragomanError) as caught:
        check_address(url)
    assert caught.value.exit_code == 2
    assert not [secret for secret in SECRETS if secret in f"{caught.value.message.replace('scheme', '')}"]


def test_an_address_reaches_workers_through_the_environment_and_no_further(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with notices_to("http://h/x"):
        assert os.environ[VARIABLE] == "http://h/x"
    assert VARIABLE not in os.environ
    monkeypatch.setenv(VARIABLE, "http://other/x")
    with notices_to("http://h/x"):
        assert os.environ[VARIABLE] == "http://h/x"
    assert os.environ[VARIABLE] == "http://other/x"


def test_every_notice_is_one_line_with_its_place():
    warnings: list[str] = []
    with web_hook() as hook:
        sender = started(check_address(hook.address), warnings)
        sender.tell("started", "begun")
        sender.step = 7
        sender.tell("done", "two\nlines")
        sender.close()
    first, last = hook.messages
    assert abs(time.time() - first.pop("time")) < 60
    assert first == {"event": "started", "run": "mine", "host": "a", "step": 0, "text": "mine: begun"}
    assert (last["event"], last["step"], last["text"]) == ("done", 7, "mine: two lines")
    assert hook.paths == ["/services/SECRET?key=HIDDEN"] * 2
    assert warnings == []


def test_without_an_address_nothing_happens():
    sender = started(None, [])
    sender.tell("started", "begun")
    sender.close()


def closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.parametrize("status", [404, 500, None])
def test_failures_are_one_warning_without_the_address(status):
    warnings: list[str] = []
    with web_hook() as hook:
        hook.status = status or 200
        sender = started(hook.address if status else f"http://127.0.0.1:{closed_port()}/SECRET", warnings)
        for _ in range(3):
            sender.tell("finding", "again")
        sender.close()
    (warning,) = warnings
    problem = f"HTTP status {status}" if status else "Connection refused"
    assert warning == f"--notify http://127.0.0.1/... took no message: {problem}; training goes on"


def test_an_address_that_hangs_delays_nothing(monkeypatch):
    monkeypatch.setattr(notices, "CLOSE_SECONDS", 0.3)
    with web_hook() as hook:
        hook.is_open.clear()
        since = time.monotonic()
        sender = started(hook.address, [])
        for _ in range(1000):
            sender.tell("finding", "x")
        assert time.monotonic() - since < 0.2
        sender.close()
        assert time.monotonic() - since < 1


def test_an_address_that_does_not_answer_is_a_warning(monkeypatch):
    monkeypatch.setattr(notices, "POST_SECONDS", 0.2)
    warnings: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender = started(f"http://127.0.0.1:{silent.getsockname()[1]}/SECRET", warnings)
        sender.tell("started", "begun")
        sender.close()
    assert warnings == ["--notify http://127.0.0.1/... took no message: TimeoutError; training goes on"]


def test_a_process_that_fails_says_so_before_it_ends():
    program = (
        "import sys; from dragoman.run.notices import Notices; sender = Notices(sys.argv[1], 'mine', 'a', print)\n"
    )
    program += "sender.step = 5; sender.tell('started', 'begun'); raise SystemExit(1)"
    with web_hook() as hook:
        subprocess.run([sys.executable, "-c", program, hook.address], check=False, timeout=30)
    assert hook.events == ["started", "stopped"]
    assert hook.messages[-1]["step"] == 5
    assert "it failed" in hook.messages[-1]["text"]
