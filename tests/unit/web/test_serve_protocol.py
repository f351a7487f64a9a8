import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState

from dragoman.web.serve.limits import Limits
from dragoman.web.serve.protocol import OneWrite, protocol_class

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Recorded(asyncio.Transport):
    """Remembers what it was given, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.calls.append(bytes(data))

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return "close" in self.calls or "abort" in self.calls


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.mark.parametrize("request_bytes", [REQUEST, REQUEST + REQUEST])
def test_an_answer_is_sent_at_once_and_not_its_head_first(request_bytes: bytes) -> None:
    async def ask() -> list[Any]:
        transport = Recorded()
        config = Config(answer, http=protocol_class(Limits()), lifespan="off")
        config.load()
        protocol = protocol_class(Limits())(config, ServerState(), {})
        protocol.connection_made(transport)
        protocol.data_received(request_bytes)
        for _ in range(20):
            await asyncio.sleep(0)
        calls = list(transport.calls)
        protocol.connection_lost(None)
        return calls

    answers = asyncio.run(ask())
    assert len(answers) == request_bytes.count(b"GET")
    assert all(each.startswith(b"HTTP/1.1 200") and each.endswith(b"hello") for each in answers)


def test_what_is_written_is_sent_before_the_end() -> None:
    async def write() -> list[Any]:
        transport = Recorded()
        written = OneWrite(transport, asyncio.get_running_loop())
        written.write(b"head")
        written.write(b"body")
        written.close()
        await asyncio.sleep(0)
        return transport.calls

    assert asyncio.run(write()) == [b"headbody", "close"]


def test_nothing_is_sent_after_a_connection_was_cut() -> None:
    async def write() -> list[Any]:
        transport = Recorded()
        written = OneWrite(transport, asyncio.get_running_loop())
        written.write(b"head")
        written.abort()
        await asyncio.sleep(0)
        return transport.calls

    assert asyncio.run(write()) == ["abort"]
