"""The server beside CTranslate2 alone, one sentence alone, and what happens when far more is asked than it can do.

    python benchmarks/serve_speed.py throughput --model EXPORT [--source FILE] [--sentences 256] [--threads 2]
    python benchmarks/serve_speed.py overload --model EXPORT [--source FILE] [--seconds 120] [--clients 640] [--threads 2]

`throughput`: 64 clients and bare `translate_batch` in turns, three rounds, the best batch size of the latter; then one warm short
sentence. `overload`: ten times as many clients as saturate it, none of which waits when it is refused. Prints one JSON line.
Both say what processor time a sentence took, which other work on the machine changes less than it changes the clock.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from dragoman.translate.export_folder import read_info
from dragoman.web.serve.bench import Running, bench, read_sentences, started
from dragoman.web.serve.bench_client import drive_for, request_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("throughput", "overload"))
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=640)
    options = parser.parse_args()
    machine = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    measured = throughput(options) if options.what == "throughput" else overload(options)
    print(json.dumps({"benchmark": f"serve_{options.what}", "threads": options.threads, **machine, **measured}))


def throughput(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "sentences"
        source.write_text("\n".join(read_sentences(options.source)[: options.sentences]), encoding="utf-8")
        return bench(options.model, source, ["--threads", str(options.threads)], options.threads, None)


def overload(options: argparse.Namespace) -> dict[str, Any]:
    info = read_info(Path(options.model))
    languages = (info.source_language, info.target_language)
    requests = [request_bytes(sentence, languages) for sentence in read_sentences(options.source)]
    with started(options.model, ["--threads", str(options.threads)]) as running:
        asyncio.run(drive_for(running.port, requests, 8, 3.0))
        samples: list[float] = []
        stop = threading.Event()
        watching = threading.Thread(target=watch_memory, args=(running, samples, stop))
        watching.start()
        cpu_start = running.cpu_seconds
        load = asyncio.run(drive_for(running.port, requests, options.clients, options.seconds))
        cpu_seconds = running.cpu_seconds - cpu_start
        stop.set()
        watching.join()
    third = max(1, len(samples) // 3)
    return {
        "clients": options.clients,
        **load.summary(),
        "cpu_ms_per_sentence": round(1000 * cpu_seconds / max(1, len(load.latencies)), 1),
        "rss_mb_first_third": round(max(samples[:third]), 1),
        "rss_mb_last_third": round(max(samples[-third:]), 1),
    }


def watch_memory(running: Running, samples: list[float], stop: threading.Event) -> None:
    while not stop.is_set():
        samples.append(running.resident_megabytes)
        time.sleep(0.5)


if __name__ == "__main__":
    main()
