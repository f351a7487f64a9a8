"""The live page over HTTP: a shell, its scripts, what is new in the run, the report. Only reads."""

import html
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse

from dragoman.report.style import style_sheet
from dragoman.units import format_seconds
from dragoman.web.headers import HEADERS
from dragoman.web.listening import is_loopback
from dragoman.web.watch.drawing import Body, Drawer
from dragoman.web.watch.snapshot import Looker, Snapshot

STATIC = {
    "watch.js": "text/javascript",
    "chart.js": "text/javascript",
    "swap.js": "text/javascript",
    "watch.css": "text/css",
}
TOKEN_BYTES = 18
MOMENT_SECONDS = 10.0  # less is not told apart
FORBIDDEN = "403: the address of this page has a token in it; open the one that `dragoman watch` printed.\n"

Next = Callable[[Request], Awaitable[Response]]


def make_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def make_app(looker: Looker, drawer: Drawer, token: str | None) -> FastAPI:
    """Without a token only requests that name this machine are answered: a foreign page has another name."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.middleware("http")(_guard(token))
    app.get("/static/{name}")(_static)

    @app.get("/")
    def shell() -> Response:
        return HTMLResponse(_shell(looker.place.name))

    @app.get("/live")
    def live(seen: int = -1) -> Response:
        return _live(looker, drawer, seen)

    @app.get("/report")
    def report() -> Response:
        return _report(looker, drawer)

    return app


def _guard(token: str | None) -> Callable[[Request, Next], Awaitable[Response]]:
    async def guard(request: Request, call_next: Next) -> Response:
        refusal = _refuse(request) if token is None else _check(request, token)
        response = refusal or await call_next(request)
        response.headers.update(HEADERS)
        return response

    return guard


def _refuse(request: Request) -> Response | None:
    name = request.url.hostname or ""
    return None if is_loopback(name) else PlainTextResponse("403: this page answers to localhost only.\n", 403)


def _check(request: Request, token: str) -> Response | None:
    """The token in the address; afterwards a cookie, so that it is not in every address one copies."""
    cookie = f"dragoman-{request.url.port or 80}"
    given = request.query_params.get("token", "")
    if secrets.compare_digest(given.encode(), token.encode()):
        response = RedirectResponse(request.url.path, 303)
        response.set_cookie(cookie, token, httponly=True, samesite="lax")
        return response
    if secrets.compare_digest(request.cookies.get(cookie, "").encode(), token.encode()):
        return None
    return PlainTextResponse(FORBIDDEN, 403)


def _live(looker: Looker, drawer: Drawer, seen: int) -> Response:
    """How the run stands; the curves only if the page has not drawn these records yet."""
    snapshot = looker.latest()
    if snapshot is None:
        return JSONResponse({"state": {"kind": "waiting", "word": "Reading", "sentence": "Reading the run."}})
    body = _body(looker, drawer, snapshot)
    words: dict[str, Any] = {**snapshot.words, "seen": snapshot.num_news}
    words["charts"] = None if seen == snapshot.num_news else snapshot.charts
    age = format_seconds(max(MOMENT_SECONDS, time.monotonic() - body.moment))
    words["report"] = {"number": body.number, "problem": body.problem, "age": age}
    return Response(json.dumps(words, allow_nan=False), media_type="application/json")


def _report(looker: Looker, drawer: Drawer) -> Response:
    snapshot = looker.latest(0.0)
    body = _body(looker, drawer, snapshot) if snapshot else drawer.body
    return JSONResponse({"number": body.number, "html": body.html, "title": html.unescape(body.title)})


def _body(looker: Looker, drawer: Drawer, snapshot: Snapshot) -> Body:
    """Half of a run's records, while they still arrive, would give wrong answers."""
    is_readable = looker.live.manifest is not None and looker.place.is_whole
    return drawer.latest(snapshot.num_news, snapshot.is_ended) if is_readable else drawer.body


def _static(name: str) -> Response:
    if name == "report.css":
        return Response(style_sheet(), media_type="text/css")
    if name not in STATIC:
        return PlainTextResponse("404\n", 404)
    return Response(_resource(name), media_type=STATIC[name])


def _shell(name: str) -> str:
    return _resource("shell.html").replace("{{ name }}", html.escape(name))


def _resource(name: str) -> str:
    return (resources.files("dragoman.web.watch") / "static" / name).read_text(encoding="utf-8")
