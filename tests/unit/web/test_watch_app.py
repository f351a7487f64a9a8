"""The live page over HTTP: who is let in, what is answered, what the browser may do with it."""

import asyncio
import json
import subprocess
import sys
import time

import pytest

from dragoman.report.page import render_page
from dragoman.run.reader import read_run
from dragoman.web.listening import is_loopback
from dragoman.web.watch.app import make_app
from dragoman.web.watch.draw import draw
from dragoman.web.watch.drawing import Body, Drawer
from dragoman.web.watch.place import Here
from dragoman.web.watch.snapshot import Looker
from growing_run import GrowingRun

EVIL = "<script>alert(1)</script>"


class NoDrawer:
    """Draws at once, nothing."""

    body = Body(1, "<h1>report</h1>", "a &amp; b", moment=time.monotonic())

    def latest(self, _records, _is_last=False):
        return self.body


@pytest.fixture
def run(tmp_path):
    return GrowingRun(tmp_path / "run", name=f"mine {EVIL}")


@pytest.fixture
def looker(run):
    looker = Looker(Here(str(run.folder.path)))
    yield looker
    looker.close()


@pytest.fixture
def ask(looker):
    """`ask("/live")` -> (status, headers, body); what a browser that is on this machine asks."""

    def answer(target, token=None, host="localhost:8765", **headers):
        path, _, query = target.partition("?")
        given = [(name.encode(), value.encode()) for name, value in {"host": host, **headers}.items()]
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": given}
        scope |= {"query_string": query.encode(), "http_version": "1.1", "scheme": "http", "server": ("x", 8765)}
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        asyncio.run(make_app(looker, NoDrawer(), token)(scope, receive, send))
        found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])

    return answer


def test_the_page_and_its_parts(ask):
    status, headers, page = ask("/")
    assert status == 200 and headers["content-type"].startswith("text/html")
    for name, kind in (
        ("watch.js", "text/javascript"),
        ("chart.js", "text/javascript"),
        ("swap.js", "text/javascript"),
    ):
        assert ask(f"/static/{name}")[1]["content-type"].startswith(kind)
    for name in ("watch.css", "report.css"):
        assert ask(f"/static/{name}")[1]["content-type"].startswith("text/css")
    assert b"{{" not in page
    for path in ("/static/shell.html", "/static/..%2Fapp.py", "/docs", "/openapi.json", "/static/"):
        assert ask(path)[0] == 404


def test_no_page_may_run_anything_but_our_files(ask):
    for path in ("/", "/live", "/report", "/static/watch.js", "/nothing"):
        policy = ask(path)[1]["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy


def test_how_the_run_stands(ask, run):
    run.steps(10)
    run.samples(2)
    run.event("finding", code="network-bound", text=EVIL)
    live = json.loads(ask("/live")[2])
    assert live["state"]["kind"] == "running" and live["step"] == "Step 10 of 1,000" and live["share"] == 0.01
    assert live["run"] == f"mine {EVIL}", "the page sets it as text"
    assert len(live["charts"]) == 3 and len(live["charts"][0]["series"][0]["points"]) == 10
    assert json.loads(ask(f"/live?seen={live['seen']}")[2])["charts"] is None
    run.steps(1, loss=float("nan"))
    time.sleep(1.0)  # the run is looked at once a second at most
    assert ask("/live?seen=abc")[0] == 422
    later = json.loads(ask(f"/live?seen={live['seen']}")[2])
    assert later["step"] == "Step 11 of 1,000" and later["charts"]


def test_the_report(ask):
    answer = json.loads(ask("/report")[2])
    assert answer == {"number": 1, "html": "<h1>report</h1>", "title": "a & b"}


def test_on_this_machine_only_its_own_names_are_answered(ask):
    assert ask("/live", host="127.0.0.1:8765")[0] == 200
    assert ask("/live", host="[::1]:8765")[0] == 200
    assert ask("/live", host="evil.example:8765")[0] == 403, "a foreign page that leads its own name to this machine"


def test_elsewhere_a_token_is_needed(ask):
    for path in ("/", "/live", "/report", "/static/watch.js", "/?token=wrong", "/?token="):
        status, _, text = ask(path, token="s3cret", host="anna:8765")
        assert status == 403 and b"token" in text
    status, headers, _ = ask("/?token=s3cret", token="s3cret", host="anna:8765")
    assert status == 303 and headers["location"] == "/"
    cookie = headers["set-cookie"].partition(";")
    assert "HttpOnly" in cookie[2]
    assert ask("/live", token="s3cret", host="anna:8765", cookie=cookie[0])[0] == 200
    assert ask("/live", token="s3cret", host="anna:8765", cookie=cookie[0] + "x")[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.0.0.9"])
def test_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "anna", "localhost.evil.example", ""])
def test_not_loopback(host):
    assert not is_loopback(host)


def test_the_style_is_that_of_the_report(run, ask):
    run.steps(3)
    page = render_page(read_run(run.folder.path))
    style = page[page.index("<style>") + len("<style>") : page.index("</style>")]
    assert ask("/static/report.css")[2].decode() == style


def test_what_is_drawn_is_the_inside_of_the_report(run):
    run.steps(3)
    drawn = draw(str(run.folder.path))
    assert "<h1>" in drawn["html"] and "</footer>" in drawn["html"] and not drawn["problem"]
    for word in ("<main", "<style", "<script", "<body"):
        assert word not in drawn["html"]
    assert EVIL not in drawn["html"] + drawn["title"]
    assert "style=" not in drawn["html"], "our policy allows no style of elements"
    assert "no folder" in draw(str(run.folder.path / "none"))["problem"]


def test_drawing_in_a_process_of_its_own(run):
    run.steps(3)
    drawer = Drawer(run.folder.path)
    try:
        assert drawer.latest(1) == Body()
        deadline = time.monotonic() + 60
        while drawer.body.number == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        body = drawer.latest(2)
        assert body.number == 1 and "<h1>" in body.html
        assert not drawer._is_drawing, "it rests before it draws again"
        drawer.latest(2, is_last=True)
        assert drawer._is_drawing, "the end of a run is drawn at once"
    finally:
        drawer.close()


def test_a_drawing_that_fails_keeps_the_one_before(run, monkeypatch):
    drawer = Drawer(run.folder.path)
    answers = [b'{"html": "<p>", "title": "", "problem": "", "cpu_seconds": 0.1}', b"Traceback"]
    monkeypatch.setattr(drawer, "_run_drawing", lambda: answers.pop(0))
    drawer._draw(1)
    drawer._draw(2)
    assert drawer.body.html == "<p>" and drawer.body.number == 1 and "could not be drawn" in drawer.body.problem


def test_watching_needs_no_torch():
    code = (
        "import sys, dragoman.web.watch.server, dragoman.web.watch.draw, dragoman.web.watch.far_side\n"
        "import dragoman.commands.watch_terminal\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
