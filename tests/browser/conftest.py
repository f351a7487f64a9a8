"""A headless browser for tests. All tests here carry the marker `browser` and run in one group, in one browser."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# It shall ask nobody for anything but the page under test.
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Pages ask every few seconds; a test does not wait so long.
IMPATIENT = "const wait = window.setTimeout; window.setTimeout = (run, ms) => wait(run, Math.min(ms, 200))"


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="module")  # while it is open a loop runs here, which tests of other modules may not like
def browser(lacking) -> Generator[Any]:
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("browser", "playwright is not installed")
    if program is None:
        lacking("browser", "none of " + ", ".join(NAMES) + " is installed")
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=[*FLAGS, *sandbox])
        yield launched
        launched.close()


@pytest.fixture
def serve() -> Generator[Callable[..., str]]:
    """`serve("watch", path)` -> the address that this command prints; it ends with the test, without a complaint."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> str:
        command = [sys.executable, "-m", "dragoman.cli", *map(str, arguments), "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        found = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
        assert found, process.communicate()[1]
        return found.group()

    yield start
    for process in processes:
        process.terminate()
    assert [_complaints(process.communicate(timeout=20)[1]) for process in processes] == [""] * len(processes)


def _complaints(errors: str) -> str:
    """What is no line of a server's log."""
    return "".join(line for line in errors.splitlines(keepends=True) if not line.startswith('{"time": '))


@pytest.fixture
def open_page(browser, serve) -> Generator[Callable[..., Any]]:
    """`open_page(address, width=390)`: a page, closed before what it shows; whatever it complains of fails the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def make(address: str, width: int = 1280, height: int = 900) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height})
        context.set_default_timeout(60_000)  # the report is drawn with the lowest priority
        context.add_init_script(IMPATIENT)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def shouting() -> Generator[Any]:
    """A server whose translations can be foreseen."""
    from shouting_server import shouting_server

    with shouting_server() as running:
        yield running


@pytest.fixture
def open_translation(browser) -> Generator[Callable[..., Any]]:
    """`open_translation(address)`: whatever the page complains of, and whatever it asks of others, fails the test."""
    from translation_page import Page

    contexts: list[Any] = []
    complaints: list[str] = []

    def make(address: str, width: int = 1280, height: int = 800, allowed: str = "^$", **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        home = re.match(r"http://[^/]+/", address).group()
        page.on("console", lambda said: re.search(allowed, said.text) or complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith((home, "blob:")) or complaints.append(f"asked {sent.url}"))
        wrapped = Page(page)
        page.goto(address)
        page.wait_for_selector("#source-language option[value=en]", state="attached")
        return wrapped

    yield make
    for context in contexts:
        context.close()
    assert complaints == []
