"""Servers for tests: the app with a stand-in for the model, and a real process with a tiny export."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dragoman.translate.translator import Hypothesis
from dragoman.web.serve.batcher import Batcher
from dragoman.web.serve.keys import Keys
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.metrics import Metrics
from dragoman.web.serve.models import Model
from dragoman.web.serve.rate import RateLimit
from dragoman.web.serve.service import Service


def capitals(sentences, wanted):
    """A translator that needs no model; marks of inline markup stay as they are."""
    return [[capital(sentence, "'" * n, wanted.alignments) for n in range(wanted.num_best)] for sentence in sentences]


def capital(sentence, more, alignments):
    text = re.sub(r"<x\d+>|.", lambda found: found[0] if len(found[0]) > 1 else found[0].upper(), sentence)
    pairs = tuple((word, word) for word in range(len(sentence.split())))
    return Hypothesis(text + more, 0.0, pairs if alignments else None)


@pytest.fixture
def make_service():
    """`make_service(max_queue=5, keys=...)`: limits by name, the rest as the service has it."""
    made = []

    def make(translate=capitals, pairs=(("en", "de"),), keys=None, rate=None, **changes):
        limits = replace(Limits(), **changes)
        metrics = Metrics()
        count = {pair: partial(metrics.count_batch, "-".join(pair)) for pair in pairs}
        models = {pair: Model(pair, Batcher(translate, limits, count[pair])) for pair in pairs}
        made.append(Service(models, limits, keys or Keys(), rate or RateLimit(None), metrics))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture(scope="session")
def tiny_export(trained_run, tmp_path_factory) -> Path:
    """An export of the tiny run; read only."""
    from small_exports import write_export

    return write_export(trained_run, tmp_path_factory.mktemp("exports") / "tiny")


class Served:
    """`dragoman serve` in a process of its own."""

    def __init__(self, folder, arguments):
        self.log_path = folder / "log.jsonl"
        command = [sys.executable, "-m", "dragoman.cli", "serve", *map(str, arguments), "--port", "0"]
        with self.log_path.open("w") as log:  # a pipe that nobody reads would stop the server
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        found = re.search(r"http://\S+:(\d+)/", self.process.stdout.readline())
        assert found, self.log_path.read_text()
        self.address, self.port = found.group(), int(found[1])

    @property
    def log(self):
        return self.log_path.read_text()

    @property
    def resident_bytes(self):
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def wait_for_log(self, words, seconds=20):
        end = time.monotonic() + seconds
        while words not in self.log:
            assert time.monotonic() < end, f"{words} is not in {self.log}"
            time.sleep(0.05)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture
def start_server(tiny_export, tmp_path):
    """`start_server("--timeout", 1)`: ended with the test, which it must survive."""
    running = []

    def start(*arguments, model=tiny_export):
        running.append(Served(tmp_path, [model, *arguments]))
        return running[-1]

    yield start
    for served in running:
        if served.process.poll() is None:
            assert served.end() == 0
        served.process.stdout.close()
        assert "Traceback" not in served.log
