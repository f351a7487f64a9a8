"""The HTTP side of the service: LibreTranslate's paths and errors, the page, the counters."""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from dragoman import __version__
from dragoman.web.serve import schema
from dragoman.web.serve.access import CLIENT_GONE, Access
from dragoman.web.serve.problem import ClientGone, Problem
from dragoman.web.serve.reading import read_request
from dragoman.web.serve.service import Service

KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "png": "image/png"}
METRICS_KIND = "text/plain; version=0.0.4; charset=utf-8"
_MEANINGS = {
    400: "What was asked is not right, or its language is not served",
    403: "An api_key is missing or not valid",
    408: "The request did not arrive in time",
    413: "More than is taken at once",
    429: "Too many requests, or too many sentences wait; see Retry-After",
    503: "No translation in time, or the server ends; see Retry-After",
}

Result = TypeVar("Result")


def make_app(service: Service, cors: Sequence[str] = ()) -> ASGIApp:
    app = FastAPI(
        title="Dragoman",
        version=__version__,
        description="Translation with LibreTranslate's API.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_api(app, service)
    _add_pages(app, service)
    for error, answer in ((Problem, _problem), (ClientGone, _gone), (HTTPException, _http), (Exception, _failure)):
        app.add_exception_handler(error, answer)
    paths = frozenset(getattr(route, "path", "") for route in app.routes)
    inner: ASGIApp = CORSMiddleware(app, cors, allow_methods=["*"], allow_headers=["*"]) if cors else app
    return Access(inner, service.metrics, paths)


def _add_api(app: FastAPI, service: Service) -> None:
    @app.post(
        "/translate",
        summary="Translate a text or several",
        response_model=schema.TranslateAnswer,
        responses=_errors(400, 403, 408, 413, 429, 503),
        openapi_extra=_body(schema.TranslateRequest),
    )
    async def translate(request: Request) -> Response:
        service.check_open()
        asked = await read_request(request, schema.TranslateRequest, service.limits)
        service.admit(_address(request), asked.api_key)
        work = service.translate(asked, request.scope["note"])
        return JSONResponse(await _while_awaited(request, work, service.limits.timeout_seconds))

    @app.post(
        "/detect",
        summary="Tell the language of a text",
        response_model=list[schema.Detected],
        responses=_errors(400, 403, 408, 413, 429, 503),
        openapi_extra=_body(schema.DetectRequest),
    )
    async def detect(request: Request) -> Response:
        service.check_open()
        asked = await read_request(request, schema.DetectRequest, service.limits)
        service.admit(_address(request), asked.api_key)
        request.scope["note"].characters = len(asked.q)
        return JSONResponse(await service.detect(asked.q))

    @app.get("/languages", summary="What is translated to what", response_model=list[schema.Language])
    async def languages() -> Response:
        return JSONResponse(service.languages())

    @app.get("/frontend/settings", summary="What a page needs to know", response_model=schema.FrontendSettings)
    async def frontend_settings() -> Response:
        return JSONResponse(service.frontend_settings())

    @app.get("/health", summary="Whether it answers", response_model=schema.Health, responses=_errors(503))
    async def health() -> Response:
        service.check_open()
        return JSONResponse({"status": "ok"})


def _add_pages(app: FastAPI, service: Service) -> None:
    @app.get("/metrics", summary="Counters for Prometheus", response_class=Response, responses=_plain(METRICS_KIND))
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type=METRICS_KIND)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(_resource("page.html"))

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        kind = KINDS.get(name.rpartition(".")[2])
        if kind is None or name not in _static_names():
            raise HTTPException(404)
        return Response(_resource(name), media_type=kind)


async def _while_awaited(request: Request, work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    """As long as somebody waits for it, and no longer than `seconds`."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())
    try:
        done, _ = await asyncio.wait((working, leaving), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working in done:
            return working.result()
        if leaving in done:
            raise ClientGone
        raise Problem(503, f"there was no translation within {seconds:g} s", 5)
    finally:
        working.cancel()
        leaving.cancel()


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


async def _problem(_: Request, error: Any) -> Response:
    return JSONResponse({"error": error.message}, error.status, error.headers)


async def _gone(_: Request, error: Any) -> Response:
    return Response(status_code=CLIENT_GONE)


async def _http(request: Request, error: Any) -> Response:
    path = request.url.path
    message = f"{path} has no {request.method}" if error.status_code == 405 else f"there is no {path}"
    return JSONResponse({"error": message}, error.status_code, error.headers)


async def _failure(_: Request, error: Any) -> Response:
    return JSONResponse({"error": "the server failed at this; its log says more"}, 500)


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": schema.ErrorAnswer, "description": _MEANINGS[status]} for status in statuses}


def _plain(kind: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {"schema": {"type": "string"}}}}}


def _body(kind: type[BaseModel]) -> dict[str, Any]:
    """Read by `read_request` and not by FastAPI, which would take a body of any size."""
    content = {"schema": kind.model_json_schema()}
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, content)}}


@cache
def _static_names() -> frozenset[str]:
    return frozenset(entry.name for entry in (resources.files("dragoman.web.serve") / "static").iterdir())


@cache
def _resource(name: str) -> bytes:
    return (resources.files("dragoman.web.serve") / "static" / name).read_bytes()
