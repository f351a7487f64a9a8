"""`dragoman serve --bench`: this server under load beside CTranslate2 alone, on the same sentences and threads.

Both take turns, so that whatever else the machine does hits them alike.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from dragoman.errors import DragomanError
from dragoman.translate.translator import Translator
from dragoman.web.serve.bench_client import Load, ask, drive, request_bytes

NUM_CLIENTS = 64
NUM_ROUNDS = 3
NUM_SINGLES = 10
BATCH_SIZES = (16, 32, 64)
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


@dataclass
class Tally:
    """What several rounds gave together."""

    num_sentences: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, num_sentences: int, seconds: float, cpu_seconds: float) -> None:
        self.num_sentences += num_sentences
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds

    def summary(self) -> dict[str, float]:
        return {
            "sentences_per_second": round(self.num_sentences / self.seconds, 2),
            "cpu_ms_per_sentence": round(1000 * self.cpu_seconds / self.num_sentences, 2),
        }


@dataclass
class Bare:
    """CTranslate2 alone: pieces in, pieces out, sorted by length."""

    translator: Translator
    sizes: dict[int, Tally] = field(default_factory=lambda: {size: Tally() for size in BATCH_SIZES})

    def pieces(self, sentences: Sequence[str]) -> list[list[str]]:
        vocab = self.translator.engine.vocab
        return [[vocab.pieces[number] for number in ids] for ids in vocab.encode(sentences)]

    def translate(self, batch: list[list[str]], size: int = 0) -> None:
        defaults = self.translator.defaults
        engine: Any = self.translator.engine
        engine.translator.translate_batch(
            batch,
            max_batch_size=size,
            beam_size=defaults.beam,
            length_penalty=defaults.length_penalty,
            max_decoding_length=defaults.max_length,
            max_input_length=0,
            return_scores=True,
        )

    def round(self, sentences: Sequence[str]) -> None:
        """With every batch size."""
        batch = sorted(self.pieces(sentences), key=len, reverse=True)
        for size, tally in self.sizes.items():
            start, cpu_start = time.perf_counter(), time.process_time()
            self.translate(batch, size)
            tally.add(len(batch), time.perf_counter() - start, time.process_time() - cpu_start)

    @property
    def best_size(self) -> int:
        return min(self.sizes, key=lambda size: self.sizes[size].seconds)


def bench(model: str, source: Path | None, options: Sequence[str], threads: int | None, device: str | None) -> Any:
    """`options` are those of the server that is measured."""
    sentences = read_sentences(source)
    translator = Translator(model, device, threads)
    bare = Bare(translator)
    bare.translate(bare.pieces(sentences[:4]))
    with started(model, options) as running:
        requests = [request_bytes(sentence, translator.languages) for sentence in sentences]
        asyncio.run(drive(running.port, requests[:NUM_CLIENTS], NUM_CLIENTS))  # warm
        load, server = Load(), Tally()
        for _ in range(NUM_ROUNDS):
            _add_round(running, requests, load, server)
            bare.round(sentences)
        singles = single_times(running.port, translator, bare, min(sentences, key=len))
        memory = running.resident_megabytes
    return _summary(running, load, server, bare, singles, memory)


def _add_round(running: Running, requests: Sequence[bytes], load: Load, tally: Tally) -> None:
    cpu_start = running.cpu_seconds
    found = asyncio.run(drive(running.port, requests, NUM_CLIENTS))
    tally.add(len(found.latencies), found.seconds, running.cpu_seconds - cpu_start)
    load.seconds += found.seconds
    load.latencies += found.latencies
    load.statuses += found.statuses


def _summary(running: Running, load: Load, server: Tally, bare: Bare, singles: dict[str, float], memory: float) -> Any:
    alone = bare.sizes[bare.best_size]
    rates = [tally.num_sentences / tally.seconds for tally in (server, alone)]
    return {
        "server": {**load.summary(), **server.summary(), "rss_mb": round(memory, 1)},
        "bare": {**alone.summary(), "batch_size": bare.best_size},
        "ratio": round(rates[0] / rates[1], 3),
        "one_sentence_ms": singles,
        "ready_seconds": round(running.ready_seconds, 2),
    }


def single_times(port: int, translator: Translator, bare: Bare, sentence: str) -> dict[str, float]:
    """Medians of a warm short sentence, each way in turn."""
    request, pieces = request_bytes(sentence, translator.languages), bare.pieces([sentence])
    times: dict[str, list[float]] = {"server": [], "translator": [], "bare": []}

    async def ask_again() -> None:
        connection = await asyncio.open_connection("127.0.0.1", port)
        await ask(connection, request)
        for _ in range(NUM_SINGLES):
            start = time.perf_counter()
            await ask(connection, request)
            times["server"].append(time.perf_counter() - start)
            times["translator"].append(_seconds(lambda: translator.translate([sentence], keep=True)))
            times["bare"].append(_seconds(lambda: bare.translate(pieces)))
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
