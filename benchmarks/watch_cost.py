"""What `dragoman watch` costs while a run goes on: processor time of the server and all it starts, with one page open.

    python benchmarks/watch_cost.py [--run RUN] [--seconds 300] [--steps-per-second 5]

Copies the records of RUN (or writes a run of two hosts of its own), then appends steps, timings and samples to the copy as
training would, while a client asks as the page does. Prints one JSON line: share of a core over the whole time, first
drawing of the report included, and the parts of it.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import psutil

from dragoman.run.folder import RunFolder, create_run_folder
from dragoman.run.records import (
    Attempt,
    DataSummary,
    Event,
    Host,
    Manifest,
    SideSize,
    StepRecord,
    TimingRecord,
    to_line,
)
from dragoman.run.samples import CardSample, SystemSample
from dragoman.run.writer import append_lines, write_manifest

HOSTS = ("a", "b")
POLL_SECONDS = 2.0


def make_run(path: Path) -> RunFolder:
    folder = create_run_folder(path)
    data = DataSummary("data", "f00d", "en-de", 50_000, SideSize("en"), SideSize("de"))
    hosts = tuple(Host(name, num_cores=8, num_ranks=1, interface="eth0") for name in HOSTS)
    recipe = {"name": "base", "train": {"max_steps": 100_000}}
    attempts = (Attempt(1, time.time(), "dragoman train", 2),)
    write_manifest(folder, Manifest("cost", time.time(), recipe, "h", {}, 2, "cpu", "fp32", 9, data, hosts, attempts))
    append_lines(folder.events_path, [to_line(Event(1, time.time(), "started", 0))])
    return folder


def copy_run(source: Path, path: Path) -> RunFolder:
    """Without its end, so that it goes on."""
    ignored = shutil.ignore_patterns("checkpoints", "tensorboard", "report*", "control.json", ".*")
    shutil.copytree(source, path, ignore=ignored)
    folder = create_run_folder(path)
    lines = folder.events_path.read_text().splitlines(keepends=True)
    folder.events_path.write_text("".join(line for line in lines if json.loads(line)["kind"] != "finished"))
    return folder


def grow(folder: RunFolder, steps_per_second: float, ending: threading.Event) -> None:
    """As a writer does: once a second, all lines of that second."""
    lines = folder.steps_path.read_text().splitlines() if folder.steps_path.exists() else []
    step, last = (json.loads(lines[-1])["step"] if lines else 0), time.time()
    while not ending.wait(1.0):
        now = time.time()
        count = round((now - last) * steps_per_second)
        for offset in range(count):
            step += 1
            moment = last + (now - last) * (offset + 1) / count
            loss = 2 + 6 / (1 + step / 100) + random.gauss(0, 0.05)
            seconds = 1 / steps_per_second
            record = StepRecord(1, moment, step, loss, loss, 1e-3, 0.5, 900, 1000, 40, seconds)
            append_lines(folder.steps_path, [to_line(record)])
            for rank, host in enumerate(HOSTS):
                parts = [share * seconds for share in (0.01, 0.2, 0.3, 0.4, 0.05, 0.0, 0.0, 0.04)]
                timing = TimingRecord(
                    1, moment, step, rank, host, *parts, seconds, 1_000_000, 1_000_000, moment - 0.4 * seconds
                )
                append_lines(folder.timing_path(rank), [to_line(timing)])
        for host in HOSTS:
            card = CardSample("eth0", random.randrange(9_000_000, 11_000_000), 10_000_000, 900, 900, 0)
            sample = SystemSample(1, now, host, now - last, 0.9, 10**10, 2 * 10**10, 0, 0, 10**11, (card,))
            append_lines(folder.system_path(host), [to_line(sample)])
        last = now


def cpu_seconds(process: psutil.Process) -> float:
    """Its own, that of children that have ended, and of those that live."""
    times = process.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        try:
            spent = child.cpu_times()
        except psutil.Error:
            continue
        total += spent.user + spent.system
    return total


def ask(address: str) -> int:
    """What the page does at each look; the number of the newest report."""
    with urllib.request.urlopen(f"{address}live?seen=-1") as answer:
        return json.load(answer).get("report", {}).get("number", 0)


def measure(folder: RunFolder, seconds: float, steps_per_second: float) -> dict[str, float]:
    command = [sys.executable, "-m", "dragoman.cli", "watch", str(folder.path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        process, ending = psutil.Process(server.pid), threading.Event()
        writer = threading.Thread(target=grow, args=(folder, steps_per_second, ending))
        writer.start()
        start_cpu = cpu_seconds(process)
        start, report, live_cpu = time.monotonic(), 0, 0.0
        try:
            while time.monotonic() - start < seconds:
                number = ask(found.group())
                if number != report:
                    urllib.request.urlopen(f"{found.group()}report").read()
                    report = number
                times = process.cpu_times()
                live_cpu = times.user + times.system - start_cpu
                time.sleep(POLL_SECONDS)
            spent, wall = cpu_seconds(process) - start_cpu, time.monotonic() - start
        finally:
            ending.set()
            writer.join()
            server.terminate()
            server.wait()
    return {
        "wall_seconds": wall,
        "start_cpu_seconds": start_cpu,
        "cpu_seconds": spent,
        "live_cpu_seconds": live_cpu,
        "num_drawings": report,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="begin with the records of this run")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--steps-per-second", type=float, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        folder = copy_run(given.run, path) if given.run else make_run(path)
        found = measure(folder, given.seconds, given.steps_per_second)
    share = found["cpu_seconds"] / found["wall_seconds"]
    live = found["live_cpu_seconds"] / found["wall_seconds"]
    rounded = {name: round(value, 3) for name, value in found.items()}
    print(
        json.dumps({"core_share": round(share, 4), "live_core_share": round(live, 4), "run": str(given.run), **rounded})
    )


if __name__ == "__main__":
    main()
