"""Clients that cost little, because they share the machine with the server: sockets kept open, no library."""

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Load:
    """What a number of clients saw."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list[float])  # of what was answered with 200
    statuses: Counter[int] = field(default_factory=Counter[int])

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, percent: int) -> float:
        """In milliseconds."""
        if len(self.latencies) < 2:
            return 1000 * sum(self.latencies)
        return 1000 * statistics.quantiles(self.latencies, n=100, method="inclusive")[percent - 1]

    def summary(self) -> dict[str, Any]:
        latency = {f"p{percent}_ms": round(self.percentile(percent), 1) for percent in (50, 95, 99)}
        statuses = {str(status): number for status, number in sorted(self.statuses.items())}
        return {"sentences_per_second": round(self.per_second, 2), **latency, "statuses": statuses}


def request_bytes(sentence: str, languages: tuple[str, str]) -> bytes:
    body = json.dumps({"q": sentence, "source": languages[0], "target": languages[1]}).encode()
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def ask(connection: Connection, request: bytes) -> int:
    """The status; the answer is read and forgotten."""
    reader, writer = connection
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    await reader.readexactly(length)
    return int(head[9:12])


async def drive(port: int, requests: Sequence[bytes], num_clients: int) -> Load:
    """Every request once, each client sending its next one as soon as it has an answer."""
    waiting = iter(requests)
    return await _drive(port, num_clients, lambda: next(waiting, None))


async def drive_for(port: int, requests: Sequence[bytes], num_clients: int, seconds: float) -> Load:
    """Again and again, for so long."""
    end = time.perf_counter() + seconds
    turns = _endless(requests)
    return await _drive(port, num_clients, lambda: next(turns) if time.perf_counter() < end else None)


async def _drive(port: int, num_clients: int, following: Callable[[], bytes | None]) -> Load:
    load = Load()

    async def client() -> None:
        connection = await asyncio.open_connection("127.0.0.1", port)
        while (request := following()) is not None:
            start = time.perf_counter()
            try:
                status = await ask(connection, request)
            except (OSError, asyncio.IncompleteReadError):
                load.statuses[0] += 1
                connection = await asyncio.open_connection("127.0.0.1", port)
                continue
            load.statuses[status] += 1
            if status == 200:
                load.latencies.append(time.perf_counter() - start)
        connection[1].close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(num_clients)))
    load.seconds = time.perf_counter() - start
    return load


def _endless(requests: Sequence[bytes]) -> Iterator[bytes]:
    while True:
        yield from requests
