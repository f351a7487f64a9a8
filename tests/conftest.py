"""What all tests share: small data, made once."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from command_line import changes, run_dragoman

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Exactness is promised on the CPU; tests/gpu asks for the GPU by name.
os.environ.setdefault("DRAGOMAN_DEVICE", "cpu")
# A run measures compute and link before its first step: so many seconds say enough where nothing depends on it.
os.environ.setdefault("DRAGOMAN_MEASURE_SECONDS", "1")
# A shell that starts the tests in the background has them ignore Ctrl-C, `nohup` a terminal that closes, and with them
# all that they start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, usual)


# What a machine may lack; --require=NAME,NAME makes a failure of what would be skipped for it.
CAPABILITIES = ("network", "browser")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require", default="", metavar="NAMES", help="fail where one of these is missing: network,browser"
    )


def pytest_configure(config: pytest.Config) -> None:
    unknown = set(required(config)) - set(CAPABILITIES)
    if unknown:
        raise pytest.UsageError(f"--require knows {', '.join(CAPABILITIES)}, not {', '.join(sorted(unknown))}")


def required(config: pytest.Config) -> list[str]:
    return [name for name in config.getoption("--require").split(",") if name]


@pytest.fixture(scope="session")
def lacking(pytestconfig: pytest.Config) -> Callable[[str, str], NoReturn]:
    """`lacking("network", reason)` skips the test or, where that is required, fails it."""

    def end(capability: str, reason: str) -> NoReturn:
        if capability in required(pytestconfig):
            pytest.fail(f"{capability} is required and missing: {reason}", pytrace=False)
        pytest.skip(f"no {capability}: {reason}")

    return end


@pytest.fixture(scope="session")
def phrasebook_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 embedded sentences, prepared once per test process."""
    from dragoman.data.phrasebook.generate import phrasebook

    folder = tmp_path_factory.mktemp("phrasebook")
    book = phrasebook(num_train=2_000, num_dev=40, num_test=40)
    for split in ("train", "dev", "test"):
        sentences = getattr(book, split)
        (folder / f"{split}.en").write_text("".join(f"{s.source}\n" for s in sentences), encoding="utf-8")
        (folder / f"{split}.de").write_text("".join(f"{s.target}\n" for s in sentences), encoding="utf-8")
    files = [
        part
        for split, prefix in (("train", ""), ("dev", "dev-"), ("test", "test-"))
        for part in (f"--{prefix}source", folder / f"{split}.en", f"--{prefix}target", folder / f"{split}.de")
    ]
    run_dragoman("prepare", "phrasebook", "--languages", "en-de", *files, "--out", folder / "data", *changes())
    return folder / "data"
