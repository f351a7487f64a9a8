"""Word of a run to a web address (`--notify`), from a background thread: never delays training, never raises into it.

Such an address is often a secret: beside the process that calls it nobody sees more of it than scheme and host.
"""

import atexit
import json
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Literal
from urllib.parse import urlsplit

from dragoman.errors import DragomanError

VARIABLE = "DRAGOMAN_NOTIFY"  # how the address reaches a worker: no list of processes shows it
OPTION = "--notify"
POST_SECONDS = 5.0
CLOSE_SECONDS = 3.0  # a run that was told to leave has little time
EXAMPLE = "for example --notify https://hooks.example.com/services/..."
_PASSWORD = re.compile(r"(\w[\w+.-]*://)[^/\s@]*@")

NoticeKind = Literal["started", "finding", "stopped", "done"]


def check_address(url: str) -> str:
    """Only what urllib can be trusted with; the words of a refusal hold nothing of the address but its scheme."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise DragomanError(f"{OPTION} is no web address", EXAMPLE) from None
    if parts.scheme not in ("http", "https"):
        given = f"{parts.scheme}:" if parts.scheme else "no scheme"
        raise DragomanError(f"{OPTION} takes an http or https address, and this one has {given}", EXAMPLE)
    if not is_whole or any(letter.isspace() or not letter.isprintable() for letter in url):
        raise DragomanError(f"{OPTION} is no web address", EXAMPLE)
    return url


def masked_address(url: str) -> str:
    """'https://user:secret@hooks.example.com/services/T0/B1' -> 'https://hooks.example.com/...'."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}/..." if parts.scheme and parts.hostname else "..."
    except ValueError:
        return "..."


def masked_words(words: Sequence[str]) -> list[str]:
    """A command line that may be kept: no address of `--notify`, no user and password in any other."""
    masked: list[str] = []
    for number, word in enumerate(words):
        if number and words[number - 1] == OPTION:
            masked.append(masked_address(word))
        elif word.startswith(f"{OPTION}="):
            masked.append(f"{OPTION}={masked_address(word.removeprefix(f'{OPTION}='))}")
        else:
            masked.append(without_password(word))
    return masked


def without_password(text: str) -> str:
    """Any text in which an address may have a user and a password: 'sftp://me:secret@host/x' -> 'sftp://...@host/x'."""
    return _PASSWORD.sub(r"\1...@", text)


@contextmanager
def notices_to(url: str | None) -> Generator[None]:
    """Processes that are started meanwhile find the address in their environment."""
    before = os.environ.get(VARIABLE)
    if url is not None:
        os.environ[VARIABLE] = url
    try:
        yield
    finally:
        if url is not None and before is None:
            del os.environ[VARIABLE]
        elif before is not None:
            os.environ[VARIABLE] = before


class Notices:
    """Rank 0's; silent without an address. `warn` is called once at most, from another thread."""

    def __init__(self, url: str | None, run: str, host: str, warn: Callable[[str], None]) -> None:
        self.step = 0  # the newest that is known
        self._run, self._host, self._warn = run, host, warn
        self._waiting: queue.SimpleQueue[dict[str, object] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        if url is not None:
            self._thread = threading.Thread(target=self._work, args=(url,), name="notices", daemon=True)
            self._thread.start()
            atexit.register(self._leave_behind)

    def tell(self, kind: NoticeKind, text: str) -> None:
        """Queue one line."""
        if self._thread is not None:
            line = f"{self._run}: {' '.join(text.split())}"
            place = {"run": self._run, "host": self._host, "step": self.step}
            self._waiting.put({"event": kind, **place, "text": line, "time": time.time()})

    def close(self) -> None:
        """Wait a moment for what is queued; calling it again does nothing."""
        if self._thread is not None:
            atexit.unregister(self._leave_behind)
            self._waiting.put(None)
            self._thread.join(CLOSE_SECONDS)
            self._thread = None

    def _leave_behind(self) -> None:
        """The process ends and nobody has said why: something failed."""
        self.tell("stopped", "it failed; the end of its output says why")
        self.close()

    def _work(self, url: str) -> None:
        has_failed = False
        while (message := self._waiting.get()) is not None:
            problem = _post(url, message)
            if problem and not has_failed:
                has_failed = True
                self._warn(f"{OPTION} {masked_address(url)} took no message: {problem}; training goes on")


def _post(url: str, message: dict[str, object]) -> str:
    """What went wrong, in words without the address: those of an exception may hold it."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    body = json.dumps(message).encode()
    try:
        with urlopen(Request(url, body, {"Content-Type": "application/json"}), timeout=POST_SECONDS):
            return ""
    except HTTPError as error:
        error.close()
        return f"HTTP status {error.code}"
    except URLError as error:
        return getattr(error.reason, "strerror", None) or type(error.reason).__name__
    except Exception as error:  # whatever it is, training goes on
        return type(error).__name__
