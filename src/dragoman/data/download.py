"""Files from the web: resumed, retried, verified, and under their final name only when whole.

Standard library only. Knows URLs and bytes, not what is in them.
"""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256

BLOCK_BYTES = 1 << 20
MAX_FAILURES = 5  # in a row without a single new byte
TIMEOUT_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 1.0

Progress = Callable[[str, float, float], None]  # stage, done, total; total 0: not known

_FINAL_STATUS = (400, 401, 403, 404, 405, 410, 451)
_TRANSIENT = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


@dataclass(frozen=True)
class Remote:
    """A file on the web, with what is known about its bytes."""

    url: str
    num_bytes: int | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


class _CutOffError(ConnectionError):
    """The server ended the transfer early."""


def download(remote: Remote, path: Path, progress: Progress, pause: Callable[[float], None] = time.sleep) -> None:
    """Fetch it unless it is there. Wrong bytes are fetched once more, from the start, and then refused."""
    if path.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    problem = ""
    for _ in range(2):
        _fetch(remote, part, progress, pause)
        problem = _find_problem(remote, part)
        if not problem:
            part.replace(path)
            return
        part.unlink()
    raise DragomanError(
        f"{remote.url} gives wrong bytes: {problem}",
        f"the server's file has changed or is damaged; put the right one at {path}",
    )


def _fetch(remote: Remote, part: Path, progress: Progress, pause: Callable[[float], None]) -> None:
    """Until the file is whole; every failure that brought new bytes starts the patience anew."""
    num_failures = 0
    while True:
        size_before = _size(part)
        try:
            _fetch_once(remote, part, progress)
            return
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _FINAL_STATUS:
                    raise _unreachable(remote, f"HTTP status {error.code}") from None
                if error.code == 416:  # what we have is not a beginning of what they have
                    part.unlink(missing_ok=True)
            reason = f"HTTP status {error.code}"
        except _TRANSIENT as error:
            reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        num_failures = 1 if _size(part) > size_before else num_failures + 1
        if num_failures >= MAX_FAILURES:
            raise _unreachable(remote, reason)
        pause(FIRST_PAUSE_SECONDS * 2 ** (num_failures - 1))


def _fetch_once(remote: Remote, part: Path, progress: Progress) -> None:
    start = _size(part)
    if remote.num_bytes is not None and start == remote.num_bytes:
        return
    request = urllib.request.Request(remote.url, headers={"User-Agent": "dragoman"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        if start and not _resumes_at(response, start):
            start = 0
        total = _total_bytes(response, start, remote.num_bytes)
        done = start
        with part.open("ab" if start else "wb") as file:
            while block := response.read(BLOCK_BYTES):
                file.write(block)
                done += len(block)
                progress(f"fetching {remote.name}", done, total or done)
    if total is not None and done < total:
        raise _CutOffError(f"the transfer ended after {done:,} of {total:,} bytes")


def _resumes_at(response: Any, start: int) -> bool:
    content_range: str = response.headers.get("Content-Range", "")
    return response.status == 206 and content_range.startswith(f"bytes {start}-")


def _total_bytes(response: Any, start: int, known: int | None) -> int | None:
    length = response.headers.get("Content-Length")
    return start + int(length) if length is not None else known


def _find_problem(remote: Remote, part: Path) -> str:
    size = _size(part)
    if remote.num_bytes is not None and size != remote.num_bytes:
        return f"{size:,} bytes instead of {remote.num_bytes:,}"
    if remote.sha256 is not None:
        found = file_sha256(part)
        if found != remote.sha256:
            return f"sha256 {found[:12]}... instead of {remote.sha256[:12]}..."
    return ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _unreachable(remote: Remote, reason: str) -> DragomanError:
    return DragomanError(
        f"{remote.url} could not be fetched: {reason}",
        "check the network and run the same command again: it goes on where it was",
    )
