"""Records that other hosts write, brought to the run folder of the first: whole lines, in order.

Each once, unless the controller is killed: what came since offsets were last saved comes again, and readers drop it.
"""

import json
import re
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from dragoman.run.folder import RunFolder, replaced_file
from dragoman.run.writer import append_lines

PATTERNS = ("timing.rank-*.jsonl", "system.*.jsonl")
NAMES = re.compile(r"timing\.rank-\d+\.jsonl|system\.[\w.%-]+\.jsonl")
BLOCK_BYTES = 1 << 18
GATHERED = "gathered.json"

Offsets = dict[str, int]  # file name -> bytes that have arrived


class Outgoing:
    """A host's side: what was appended to its files since they were last looked at."""

    def __init__(self, folder: RunFolder, offsets: Offsets) -> None:
        self._folder = folder
        self._offsets = dict(offsets)

    def news(self) -> Generator[dict[str, Any]]:
        """Messages with whole lines, until all has been told."""
        paths = [path for pattern in PATTERNS for path in sorted(self._folder.path.glob(pattern))]
        for path in paths:
            yield from self._news_of(path)

    def _news_of(self, path: Path) -> Generator[dict[str, Any]]:
        offset = self._offsets.get(path.name, 0)
        with suppress(OSError):
            if path.stat().st_size < offset:
                offset = 0  # another file than the one we knew
            with path.open("rb") as file:
                file.seek(offset)
                while data := file.read(BLOCK_BYTES):
                    whole = data[: data.rfind(b"\n") + 1]
                    if not whole:
                        break
                    yield {
                        "type": "records",
                        "file": path.name,
                        "offset": offset,
                        "text": whole.decode(errors="replace"),
                    }
                    offset += len(whole)
                    self._offsets[path.name] = offset
                    file.seek(offset)


class Gathered:
    """The first host's side: appends what comes, and remembers how much of each host's files it has."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._path = folder.path / GATHERED
        self._offsets: dict[str, Offsets] = _read(self._path)
        self._given_up: set[tuple[str, str]] = set()

    def offsets(self, host: str) -> Offsets:
        return self._offsets.get(host, {})

    def add(self, host: str, message: dict[str, Any]) -> str | None:
        """Append them; where that fails, say so once, and leave the rest of that file to the next attempt."""
        name, text = str(message["file"]), str(message["text"])
        if NAMES.fullmatch(name) is None or (host, name) in self._given_up:
            return None
        try:
            append_lines(self._folder.path / name, [text])
        except OSError as error:
            self._given_up.add((host, name))
            return f"warning: {name} of {host} is not gathered any more: {error.strerror}"
        self._offsets.setdefault(host, {})[name] = int(message["offset"]) + len(text.encode())
        return None

    def save(self) -> None:
        with suppress(OSError), replaced_file(self._path) as fresh:
            fresh.write_text(json.dumps(self._offsets) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Offsets]:
    try:
        return cast("dict[str, Offsets]", json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
