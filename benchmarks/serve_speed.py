"""The server beside CTranslate2 alone, one sentence alone, documents beside sentences, and far more than it can do.

    python benchmarks/serve_speed.py throughput --model EXPORT [--source FILE] [--sentences 1024] [--threads 2]
                                                [--per-request 1]
    python benchmarks/serve_speed.py overload --model EXPORT [--source FILE] [--sentences 1024] [--threads 2]
                                              [--per-request 1] [--seconds 300] [--clients 960] [--times 10]
    python benchmarks/serve_speed.py documents --model EXPORT [--source FILE] [--sentences 1024] [--threads 2]
                                               [--per-request 200] [--documents 6] [--times 0.8]

`throughput`: 64 clients and bare `translate_batch` in turns, three rounds, the best batch size of the latter, as it comes and
with the heap and the instructions that the server has; then one warm short sentence. `overload`: first what 64 clients get,
then ten times as many requests a second for five minutes, by clients that do not wait when they are refused; every answer is
compared with what the model gives when nobody else asks. `documents`: how long long requests take, one after the other, while
clients ask for a share of what the server can do, one sentence at a time. `throughput` and `overload` say what processor time
a sentence took, which other work on the machine changes less than it changes the clock. Prints one JSON line.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice, takewhile
from pathlib import Path
from typing import Any

from dragoman.translate.documents.formats import split_document
from dragoman.translate.translator import Translator
from dragoman.web.serve.bench import NUM_CLIENTS, Running, bench, read_sentences, started
from dragoman.web.serve.bench_client import Asked, Expected, Load, drive, for_seconds, request

CAPACITY_SECONDS = 20.0
# Unless told otherwise. Clients: less than the connections a server takes, and enough for all who wait.
OVERLOAD = {"per_request": 1, "times": 10.0, "clients": 960}
DOCUMENTS = {"per_request": 200, "times": 0.8, "clients": 400}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=tuple(WHAT))
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--per-request", type=int, help="sentences that a client sends together: 1, of a document 200")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--times", type=float, help="so many times what it can answer: 10, beside documents 0.8")
    parser.add_argument("--documents", type=int, default=6)
    options = parser.parse_args()
    for name, usual in (DOCUMENTS if options.what == "documents" else OVERLOAD).items():
        setattr(options, name, getattr(options, name) or usual)
    machine = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    measured = WHAT[options.what](options)
    print(json.dumps({"benchmark": f"serve_{options.what}", "threads": options.threads, **machine, **measured}))


def throughput(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "sentences"
        source.write_text("\n".join(read_sentences(options.source)[: options.sentences]), encoding="utf-8")
        served = ["--threads", str(options.threads)]
        return {
            "sentences_per_request": options.per_request,
            **bench(options.model, source, served, options.threads, None, options.per_request),
        }


def overload(options: argparse.Namespace) -> dict[str, Any]:
    lines = read_sentences(options.source)[: options.sentences]
    translator = Translator(options.model, threads=options.threads)
    requests, expected = with_answers(translator, lines, options.per_request)
    with started(options.model, ["--threads", str(options.threads)]) as running:
        capacity = sentences_per_second(running, requests)
        load, cpu_start = Load(), running.cpu_seconds
        asked = for_seconds(requests, options.seconds)
        with memory_samples(running) as samples:
            pace = options.times * capacity / options.per_request
            asyncio.run(drive(running.port, asked, options.clients, load, expected, pace))
        cpu_seconds = running.cpu_seconds - cpu_start
    return {
        "clients": options.clients,
        "sentences_per_request": options.per_request,
        "capacity_per_second": round(capacity, 2),
        "times_capacity": round(load.statuses.total() * options.per_request / load.seconds / capacity, 2),
        **load.summary(),
        "wrong_answers": load.num_wrong,
        "cpu_ms_per_sentence": round(1000 * cpu_seconds / max(1, load.num_sentences), 1),
        "rss_mb_by_tenth": [round(max(part), 1) for part in tenths(samples)],
    }


def documents(options: argparse.Namespace) -> dict[str, Any]:
    lines = read_sentences(options.source)[: options.sentences]
    languages = Translator(options.model, threads=options.threads).languages
    singles = [request([line], languages) for line in lines]
    firsts = range(0, len(lines) - options.per_request + 1, options.per_request)
    parts = [lines[first : first + options.per_request] for first in firsts]
    asked = [request(part, languages) for part in islice(cycle(parts), options.documents)]
    with started(options.model, ["--threads", str(options.threads)]) as running:
        capacity = sentences_per_second(running, singles)
        alone, beside, load = Load(), Load(), Load()
        asyncio.run(drive(running.port, iter(asked[:1]), 1, alone))
        pace = options.times * capacity
        asyncio.run(drive_beside(running.port, asked, beside, singles, load, options.clients, pace))
    return {
        "sentences_per_document": options.per_request,
        "capacity_per_second": round(capacity, 2),
        "alone_seconds": [round(each, 1) for each in alone.latencies],
        "seconds": [round(each, 1) for each in beside.latencies],
        "document_statuses": dict(beside.statuses),
        "singles_per_second": round(pace, 2),
        "singles": load.summary(),
    }


async def drive_beside(
    port: int, asked: list[Asked], beside: Load, singles: list[Asked], load: Load, num_clients: int, pace: float
) -> None:
    """Documents one after the other, and single sentences until the last of them is there."""
    begun = asyncio.create_task(drive(port, iter(asked), 1, beside))
    endless = takewhile(lambda _: not begun.done(), cycle(singles))
    await drive(port, endless, num_clients, load, most_per_second=pace)
    await begun


def sentences_per_second(running: Running, requests: list[Asked]) -> float:
    """What 64 clients get, each asking again as soon as it has an answer."""
    load = Load()
    asyncio.run(drive(running.port, for_seconds(requests, CAPACITY_SECONDS), NUM_CLIENTS, load))
    return load.num_sentences / load.seconds


def with_answers(translator: Translator, lines: list[str], per_request: int) -> tuple[list[Asked], Expected]:
    """Requests, and what the model says to each when nobody else asks: a text for one, a list for several."""
    alone = translate_alone(translator, lines)
    expected: dict[Asked, str | list[str]] = {}
    for i in range(0, len(lines) - per_request + 1, per_request):
        asked = request(lines[i : i + per_request], translator.languages)
        expected[asked] = alone[i] if per_request == 1 else alone[i : i + per_request]
    return list(expected), expected


def translate_alone(translator: Translator, lines: list[str]) -> list[str]:
    """Line by line, as requests of nobody else beside them would be."""
    texts: list[str] = []
    for line in lines:
        document = split_document(line, "text", translator.languages[0])
        best = translator.translate([sentence.text for sentence in document.sentences], keep=True)
        texts.append(document.filled([each[0].text for each in best]))
    return texts


def tenths(samples: list[float]) -> list[list[float]]:
    """In order, none of them empty: whether memory still grows at the end is seen in them."""
    size = -(-len(samples) // 10)
    return [samples[first : first + size] for first in range(0, len(samples), size)]


@contextmanager
def memory_samples(running: Running) -> Iterator[list[float]]:
    """What the server holds, twice a second."""
    samples: list[float] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.5):
            samples.append(running.resident_megabytes)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield samples
    finally:
        stop.set()
        watching.join()


WHAT = {"throughput": throughput, "overload": overload, "documents": documents}

if __name__ == "__main__":
    main()
