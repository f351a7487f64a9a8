"""HTTP connections that cannot be held for ever: slow clients are let go, too many are told so.

uvicorn itself limits neither the time for the head of a request nor that for an answer which nobody takes. And it sends
the head of an answer before its body, which wakes whoever waits for it twice.
"""

import asyncio
import json
from typing import Any

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.web.serve.limits import Limits


def protocol_class(limits: Limits) -> type[H11Protocol]:
    """uvicorn makes the connections, so the limits have to be in the class."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})


class LimitedProtocol(H11Protocol):
    """See the module."""

    limits = Limits()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(OneWrite(transport, self.loop))  # type: ignore[arg-type]
        if len(self.connections) > self.limits.max_connections:
            self.app = refuse
        self._timer = self._abort_later()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._timer = _stopped(self._timer)
        elif self._timer is None:
            self._timer = self._abort_later()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0] and self._timer is None:
            self._timer = self._abort_later()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self._write_timer or self._abort_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_timer = _stopped(self._write_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._timer, self._write_timer = _stopped(self._timer), _stopped(self._write_timer)

    def send_400_response(self, msg: str) -> None:
        body = json.dumps({"error": "this is not valid HTTP"}).encode()
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        self.transport.close()

    def _abort_later(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self.limits.read_seconds, self.transport.abort)


class OneWrite:
    """A transport that sends together what is written in one turn of the loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._written: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._written:
            self._loop.call_soon(self._send)
        self._written.append(data)

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._written.clear()
        self._transport.abort()

    def _send(self) -> None:
        if self._written:
            data = b"".join(self._written)
            self._written.clear()
            self._transport.write(data)


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """What a connection gets that is one too many."""
    body = json.dumps({"error": "too many connections; try again later"}).encode()
    names = {"content-type": "application/json", "content-length": len(body), "retry-after": 1, "connection": "close"}
    headers = [(name.encode(), str(value).encode()) for name, value in names.items()]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
