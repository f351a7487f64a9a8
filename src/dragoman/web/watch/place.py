"""Where the watched run lies: a folder of this machine, or one of another host, followed into a scratch folder."""

import base64
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from dragoman.errors import DragomanError
from dragoman.launch.copying.transfer import safe_path
from dragoman.launch.hosts.hosts import Host, read_remote
from dragoman.launch.hosts.session import HostSession, problem_line
from dragoman.run.folder import RunFolder
from dragoman.web.watch.vitals import Vitals, read_vitals

AGAIN_SECONDS = 5.0
MAX_CALLS = 2  # of one look: a long run arrives in several, and the page shows what is there meanwhile


class Place(Protocol):
    """What a watched run is read from. `look` may take a while, `close` ends whatever it holds."""

    name: str  # as the user typed it
    is_whole: bool  # all records that there are have arrived

    @property
    def folder(self) -> RunFolder: ...
    def look(self) -> Vitals: ...
    def close(self) -> None: ...


class Here:
    """A folder of this machine: nothing to do but to look."""

    def __init__(self, path: str) -> None:
        self.name = path
        self.is_whole = True
        self.folder = RunFolder(Path(path))

    def look(self) -> Vitals:
        return read_vitals(self.folder)

    def close(self) -> None:
        pass


class There:
    """A folder of another host. What its files gained since the last look is appended to a copy here."""

    def __init__(self, name: str, host: Host, path: str, connect: Callable[[Host], HostSession] = HostSession) -> None:
        self.name = name
        self.is_whole = False
        self._host, self._path, self._connect = host, path, connect
        self._scratch = tempfile.TemporaryDirectory(prefix="dragoman-watch-")
        self.folder = RunFolder(Path(self._scratch.name) / (Path(path).name or "run"))
        self._session: HostSession | None = None
        self._again = 0.0  # not before this moment
        self._problem = ""
        self._known: dict[str, list[int]] = {}  # file -> its stamp there and the bytes that are here

    def look(self) -> Vitals:
        if time.monotonic() < self._again:
            return Vitals(False, time.time(), problem=self._problem)
        try:
            return self._follow()
        except DragomanError as error:
            return self._fail(problem_line(error))
        except OSError as error:
            return self._fail(f"cannot write to {self.folder.path}: {error.strerror}")

    def close(self) -> None:
        self._disconnect()
        self._scratch.cleanup()

    def _disconnect(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _fail(self, problem: str) -> Vitals:
        self._disconnect()
        self._problem = f"{problem}. Trying again."
        self._again = time.monotonic() + AGAIN_SECONDS
        return Vitals(False, time.time(), problem=self._problem)

    def _follow(self) -> Vitals:
        if self._session is None:
            self._session = self._connect(self._host).__enter__()
        answer: dict[str, Any] = {}
        for _ in range(MAX_CALLS):
            answer = self._session.call("news_of_run", path=self._path, known=self._known)
            self._keep(answer)
            self.is_whole = not answer["is_more"]
            if self.is_whole:
                break
        return Vitals(**answer["vitals"])

    def _keep(self, answer: dict[str, Any]) -> None:
        if answer["is_there"]:
            self.folder.path.mkdir(exist_ok=True)
        for name in answer["gone"]:
            safe_path(self.folder.path, name).unlink(missing_ok=True)
            self._known.pop(name, None)
        for piece in answer["pieces"]:
            path = safe_path(self.folder.path, piece["name"])
            data = zlib.decompress(base64.b64decode(piece["data"]))
            path.parent.mkdir(parents=True, exist_ok=True)
            if piece["offset"]:
                with path.open("r+b") as file:
                    file.seek(piece["offset"])
                    file.write(data)
            else:
                # Replaced whole: a reader meets no half of it, and sees that it is not the file it knew.
                fresh = path.with_name(f".{path.name}.new")
                fresh.write_bytes(data)
                fresh.replace(path)
            self._known[piece["name"]] = [piece["stamp"], piece["offset"] + len(data)]


def open_place(run: str, hosts: str | None = None) -> Place:
    """RUN or HOST:PATH."""
    remote = read_remote(run, hosts) if ":" in run else None
    return Here(run) if remote is None else There(run, *remote)
