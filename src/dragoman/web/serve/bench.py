"""`dragoman serve --bench`: this server under load beside CTranslate2 alone, on the same sentences and threads.

All take turns, so that whatever else the machine does hits them alike. CTranslate2 is measured as it comes, and with
the memory and the instructions that the server chose for it: the first is what one gets, the second what serving costs.
"""

import asyncio
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import psutil

from dragoman.allocator import keep_freed_memory
from dragoman.errors import DragomanError
from dragoman.translate.translator import Translator
from dragoman.web.serve.bench_bare import Bare, BareApart, BareHere, Tally
from dragoman.web.serve.bench_client import Asked, Load, ask, drive, request

NUM_CLIENTS = 64
NUM_ROUNDS = 3
NUM_SINGLES = 10
BATCH_SIZES = (16, 24, 32, 64)
START_SECONDS = 60.0


@dataclass
class Running:
    """A server in a process of its own."""

    process: psutil.Process
    port: int
    ready_seconds: float

    @property
    def cpu_seconds(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system

    @property
    def resident_megabytes(self) -> float:
        return self.process.memory_info().rss / 1e6


def bench(
    model: str,
    source: Path | None,
    options: Sequence[str],
    threads: int | None,
    device: str | None,
    sentences_per_request: int = 1,
) -> Any:
    """Of an export. `options` are those of the server that is measured."""
    sentences = read_sentences(source)
    with BareApart(model, device, threads) as bare:  # first of all: the next lines change what it would inherit
        keep_freed_memory()
        translator = Translator(model, device, threads)
        tuned = BareHere.of(translator)
        size = best_batch_size(bare, sentences)
        with started(model, options) as running:
            firsts = range(0, len(sentences), sentences_per_request)
            requests = [request(sentences[i : i + sentences_per_request], translator.languages) for i in firsts]
            load, tallies = Load(), (Tally(), Tally(), Tally())
            for _ in range(NUM_ROUNDS):
                tallies[0].add(_served(running, requests, load))
                tallies[1].add(bare.round(sentences, size))
                tallies[2].add(tuned.round(sentences, size))
            singles = single_times(running.port, translator, (bare, tuned), min(sentences, key=len))
            memory = running.resident_megabytes
        return _summary(load, tallies, size) | {
            "one_sentence_ms": singles,
            "ready_seconds": round(running.ready_seconds, 2),
            "rss_mb": round(memory, 1),
        }


def best_batch_size(bare: Bare, sentences: Sequence[str]) -> int:
    return max(BATCH_SIZES, key=lambda size: bare.round(sentences, size).rate)


def _served(running: Running, requests: Sequence[Asked], load: Load) -> Tally:
    """While all clients are there: neither the first of them, whom nobody joins yet, nor the last are timed."""
    marks: list[tuple[int, float, float]] = []

    def turns() -> Iterator[Asked]:
        endless = cycle(requests)
        for number in (2 * NUM_CLIENTS, len(requests), NUM_CLIENTS):
            yield from islice(endless, number)
            marks.append((load.num_sentences, time.perf_counter(), running.cpu_seconds))

    asyncio.run(drive(running.port, turns(), NUM_CLIENTS, load))
    (before, start, cpu_start), (after, end, cpu_end), _ = marks
    if before == after:
        raise DragomanError("the server answered nothing", "start it without --bench, and ask it")
    return Tally(after - before, end - start, cpu_end - cpu_start)


def _summary(load: Load, tallies: tuple[Tally, Tally, Tally], batch_size: int) -> dict[str, Any]:
    server, bare, tuned = tallies
    return {
        "server": {**load.summary(), **server.summary()},
        "bare": {**bare.summary(), "batch_size": batch_size},
        "bare_with_our_settings": tuned.summary(),
        "ratio": round(server.rate / bare.rate, 3),
        "ratio_with_our_settings": round(server.rate / tuned.rate, 3),
    }


def single_times(port: int, translator: Translator, bares: tuple[Bare, Bare], sentence: str) -> dict[str, float]:
    """Medians of a warm short sentence, each way in turn."""
    asked = request([sentence], translator.languages)
    ways: dict[str, Callable[[], float]] = {
        "translator": lambda: _seconds(lambda: translator.translate([sentence], keep=True)),
        "bare": lambda: bares[0].seconds_alone(sentence),
        "bare_with_our_settings": lambda: bares[1].seconds_alone(sentence),
    }
    times: dict[str, list[float]] = {name: [] for name in ("server", *ways)}

    async def ask_again() -> None:
        connection = await asyncio.open_connection("127.0.0.1", port)
        await ask(connection, asked)
        for _ in range(NUM_SINGLES):
            start = time.perf_counter()
            await ask(connection, asked)
            times["server"].append(time.perf_counter() - start)
            for name, way in ways.items():
                times[name].append(way())
        connection[1].close()

    asyncio.run(ask_again())
    return {name: round(1000 * statistics.median(found), 2) for name, found in times.items()}


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def started(model: str, options: Sequence[str] = ()) -> Iterator[Running]:
    """A server on a free port; its log goes nowhere."""
    command = [sys.executable, "-m", "dragoman.cli", "serve", model, "--port", "0", *options]
    with tempfile.TemporaryFile("w+") as log:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            line = process.stdout.readline() if process.stdout else ""
            found = re.search(r"http://\S+:(\d+)/", line)
            if found is None:
                process.wait(START_SECONDS)
                log.seek(0)
                raise DragomanError(f"the server did not start: {log.read().strip()}", "start it without --bench")
            yield Running(psutil.Process(process.pid), int(found[1]), time.perf_counter() - start)
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def read_sentences(source: Path | None) -> list[str]:
    if source is None:
        from dragoman.web.serve.bench_sentences import SENTENCES

        return list(SENTENCES)
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise DragomanError(f"cannot read {source}", "name a text file, one sentence a line") from None
    sentences = [line.strip() for line in lines if line.strip()]
    if not sentences:
        raise DragomanError(f"{source} has no sentence in it", "name a text file, one sentence a line")
    return sentences
