"""What a host does for somebody who watches a run of its own from elsewhere: sends what its records gained."""

import base64
import dataclasses
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dragoman.launch.hosts.facts import absolute_path
from dragoman.run.control import control_path, hosts_log_path
from dragoman.run.folder import RunFolder
from dragoman.web.watch.vitals import read_vitals

ANSWER_BYTES = 1 << 23  # of records in one answer; they travel in about a fifth of that


def news_of_run(path: str, known: dict[str, list[int]]) -> dict[str, Any]:
    """`known`: name -> [stamp, bytes that have arrived]. What is small and tells most comes first."""
    folder = RunFolder(absolute_path(path))
    vitals = read_vitals(folder)
    pieces: list[dict[str, Any]] = []
    names: set[str] = set()
    room = ANSWER_BYTES
    for file in _files(folder) if vitals.is_there else ():
        names.add(file.relative_to(folder.path).as_posix())
        piece = _piece(folder.path, file, known, room) if room > 0 else None
        if piece is not None:
            room -= piece.pop("num_bytes")
            pieces.append(piece)
    return {
        "vitals": dataclasses.asdict(vitals),
        "is_there": vitals.is_there,
        "gone": [name for name in known if name not in names],
        "pieces": pieces,
        "is_more": room <= 0,
    }


def _files(folder: RunFolder) -> Iterator[Path]:
    """What a reader of records needs: no weights, no event files, nothing that is being written under a dot."""
    whole = (folder.manifest_path, folder.profile_path, folder.prediction_path, control_path(folder))
    lines = (folder.events_path, folder.evals_path, folder.steps_path, hosts_log_path(folder), folder.log_path)
    sentences = sorted((folder.path / "evals").glob("step-*/*.jsonl"))
    for path in (*whole, *lines, *folder.system_paths(), *folder.timing_paths(), *sentences):
        if path.is_file() and not path.name.startswith("."):
            yield path


def _piece(root: Path, path: Path, known: Mapping[str, list[int]], max_bytes: int) -> dict[str, Any] | None:
    """The next stretch of a file; the whole of it where it was replaced. None where nothing is new."""
    name = path.relative_to(root).as_posix()
    try:
        status = path.stat()
        # Files of lines only grow, the others are replaced under a new inode.
        stamp, offset = known.get(name, [status.st_ino, 0])
        if stamp != status.st_ino or status.st_size < offset:
            offset = 0
        elif status.st_size == offset and name in known:
            return None
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(max_bytes)
    except OSError:
        return None
    text = base64.b64encode(zlib.compress(data, 1)).decode()
    return {"name": name, "stamp": status.st_ino, "offset": offset, "data": text, "num_bytes": max(1, len(data))}


WATCH_OPS: Mapping[str, Callable[..., Any]] = {"news_of_run": news_of_run}
