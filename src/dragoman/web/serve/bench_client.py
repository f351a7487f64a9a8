"""Clients that cost little, because they share the machine with the server: sockets kept open, no library."""

import asyncio
import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, cycle
from typing import Any

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Load:
    """What a number of clients saw."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list[float])  # of requests that were answered with 200
    num_sentences: int = 0  # of these requests
    statuses: Counter[int] = field(default_factory=Counter[int])
    num_wrong: int = 0  # answered with 200, and not with what was expected

    @property
    def per_second(self) -> float:
        """Sentences."""
        return self.num_sentences / self.seconds

    def percentile(self, percent: int) -> float:
        """In milliseconds."""
        if len(self.latencies) < 2:
            return 1000 * sum(self.latencies)
        return 1000 * statistics.quantiles(self.latencies, n=100, method="inclusive")[percent - 1]

    def summary(self) -> dict[str, Any]:
        latency = {f"p{percent}_ms": round(self.percentile(percent), 1) for percent in (50, 95, 99)}
        statuses = {str(status): number for status, number in sorted(self.statuses.items())}
        return {"sentences_per_second": round(self.per_second, 2), **latency, "statuses": statuses}


@dataclass(frozen=True)
class Asked:
    """A request, as it goes over the line."""

    content: bytes
    num_sentences: int


def request(texts: Sequence[str], languages: tuple[str, str]) -> Asked:
    """One text goes as a string, several as a list."""
    asked = {"q": texts[0] if len(texts) == 1 else list(texts), "source": languages[0], "target": languages[1]}
    body = json.dumps(asked).encode()
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return Asked(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body, len(texts))


Expected = Mapping[Asked, str | list[str]]  # what belongs to a request


async def ask(connection: Connection, asked: Asked) -> tuple[int, bytes]:
    """Status and body."""
    reader, writer = connection
    writer.write(asked.content)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    return int(head[9:12]), await reader.readexactly(length)


async def drive(
    port: int,
    requests: Iterator[Asked],
    num_clients: int,
    load: Load,
    expected: Expected | None = None,
    most_per_second: float = math.inf,
) -> None:
    """All of them, each client taking the next one as soon as it has an answer; what they see is added to `load`."""
    turns = count()

    async def client() -> None:
        connection: Connection | None = None  # a server lets go of those who connect and say nothing
        for asked in requests:
            await asyncio.sleep(began + next(turns) / most_per_second - time.perf_counter())
            start = time.perf_counter()
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", port)
                status, body = await ask(connection, asked)
            except (OSError, asyncio.IncompleteReadError):
                load.statuses[0] += 1
                connection = None
                continue
            load.statuses[status] += 1
            if status == 200:
                load.latencies.append(time.perf_counter() - start)
                load.num_sentences += asked.num_sentences
                load.num_wrong += expected is not None and json.loads(body)["translatedText"] != expected[asked]
        if connection is not None:
            connection[1].close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(num_clients)))
    load.seconds += time.perf_counter() - began


def for_seconds(requests: Sequence[Asked], seconds: float) -> Iterator[Asked]:
    """Again and again, for so long."""
    end = time.perf_counter() + seconds
    for asked in cycle(requests):
        if time.perf_counter() >= end:
            return
        yield asked
