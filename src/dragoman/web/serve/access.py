"""Around every request: one line of log, the counters, the headers. Never sees a text or a key."""

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.web.headers import HEADERS
from dragoman.web.serve.metrics import Metrics
from dragoman.web.serve.translation import Note

CLIENT_GONE = 499  # as nginx writes it
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def write_line(entry: dict[str, Any]) -> None:
    sys.stderr.write(json.dumps(entry) + "\n")


class Access:
    """ASGI, outside of everything else."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: frozenset[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        note = scope["note"] = Note()
        status = CLIENT_GONE

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_RAW_HEADERS]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            self._note(scope, status, time.perf_counter() - start, note)

    def _note(self, scope: Scope, status: int, seconds: float, note: Note) -> None:
        path = scope["path"]
        is_static = path.startswith("/static/")
        # Whoever makes paths up shall not make counters.
        self._metrics.count_request(
            "/static" if is_static else path if path in self._paths else "other", status, seconds
        )
        write_line(
            {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "client": (scope.get("client") or ("",))[0],
                "method": scope["method"],
                "path": path[:200],
                "status": status,
                "milliseconds": round(1000 * seconds, 1),
                "characters": note.characters,
                "sentences": note.sentences,
                "pair": note.pair,
            }
        )
