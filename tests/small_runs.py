"""Small runs inside the test process: the code a worker runs, without paying for another import of torch."""

import json
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command_line import TINY_RUN
from dragoman.cli import app, run_guarded
from dragoman.config import Recipe
from dragoman.recipe import load_recipe
from dragoman.train.job import make_job
from dragoman.train.rank import main
from dragoman.train.stop import SIGNALS


def tiny_recipe(*settings: str) -> Recipe:
    return load_recipe("phrasebook", [*TINY_RUN, *settings])


def tiny_job(
    data: Path, run: Path, *settings: str, workers: int = 1, init: Path | None = None, fork: Path | None = None
) -> str:
    """Checked as the command checks it; what a worker is given."""
    command = shlex.join(["dragoman", *sys.argv[1:]])
    models = {name: str(path) for name, path in (("init", init), ("fork", fork)) if path is not None}
    return make_job(tiny_recipe(*settings), data, run, workers, command, **models).to_json()


def train_here(data: Path, run: Path, *settings: str, init: Path | None = None, fork: Path | None = None) -> int:
    """`dragoman train` with one worker; its exit code."""
    with kept_signals():
        return main(tiny_job(data, run, *settings, init=init, fork=fork))


@contextmanager
def kept_signals() -> Iterator[None]:
    """A run takes the signals that end it over; give them back to pytest."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def records(run: Path, name: str) -> list[dict[str, Any]]:
    """Lines of `steps`, `evals` or `events`."""
    return [json.loads(line) for line in (run / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def dragoman_here(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """A command line inside this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["dragoman", *map(str, arguments)])
    try:
        return run_guarded(app)
    except SystemExit as end:
        return end.code or 0
