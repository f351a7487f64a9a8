"""Keeps a copy of a run folder elsewhere while the run goes on. It may fail and try again; it never stops training.

A checkpoint is copied whole once it has its final name; other files are sent again when they changed. What was sent is
kept in the run folder, so that the next attempt does not begin anew. Knows targets (`mirror_target`) and files only.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from dragoman.errors import DragomanError
from dragoman.launch.copying.mirror_target import Target, open_target
from dragoman.launch.hosts.session import problem_line
from dragoman.run.folder import replaced_file
from dragoman.run.notices import without_password

EVERY_SECONDS = 15.0
FINAL_SECONDS = 900.0  # for the last pass, after the run
# A log of 10 MB that grows by a line must not be sent every 15 s over the link that carries the exchange.
MAX_BYTES_PER_SECOND = 256_000
STATE_NAME = ".mirror.json"
CHECKPOINTS = "checkpoints"

Say = Callable[[str], None]
Signature = list[Any]  # of a file or a checkpoint folder: changes when it does


@dataclass(frozen=True)
class Unit:
    """What is sent at once: a file, a link, or a whole checkpoint folder."""

    name: str
    signature: Signature
    num_bytes: int
    kind: Literal["file", "checkpoint", "link"]


class Mirror:
    """A thread that copies until `stop`; `start_mirror` makes one."""

    def __init__(self, folder: Path, destination: str, say: Say) -> None:
        self._stop = threading.Event()
        self._is_whole = False
        self._say = say
        self._thread = threading.Thread(target=self._work, args=(folder, destination), name="mirror", daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float = FINAL_SECONDS) -> bool:
        """Copy once more and end; whether everything is there. Gives up after a while, and says so."""
        self._stop.set()
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            self._say(
                f"warning: the mirror is not complete after {timeout_seconds:.0f} s; `dragoman fetch` brings the rest"
            )
        return self._is_whole

    def _work(self, folder: Path, destination: str) -> None:
        self._is_whole = mirror_run(folder, destination, self._stop, self._say)


def start_mirror(folder: Path, destination: str, say: Say) -> Mirror:
    return Mirror(folder, destination, say)


def check_mirror(destination: str) -> str:
    """Can it be written? On the host that will do it; one line that says where the copy goes."""
    target = open_target(destination)
    target.check()
    return without_password(target.name)


def mirror_run(
    folder: Path, destination: str, stop: threading.Event, say: Say, every_seconds: float = EVERY_SECONDS
) -> bool:
    """Copy all the time, and once more at the end; whether the last copy was whole."""
    was_failing, shown = False, without_password(destination)
    while True:
        is_last = stop.is_set()
        problem = _try_pass(folder, destination, is_last)
        if problem and (not was_failing or is_last):
            say(f"warning: the mirror {shown} fails: {problem}" + ("" if is_last else "; trying again"))
        elif was_failing and not problem:
            say(f"the mirror {shown} works again")
        was_failing = bool(problem)
        if is_last:
            return not problem
        stop.wait(every_seconds)


def _try_pass(folder: Path, destination: str, is_last: bool) -> str:
    try:
        copy_changes(folder, destination, is_last)
    except DragomanError as error:
        return without_password(problem_line(error))
    except Exception as error:  # whatever a backend raises, training goes on
        return without_password(f"{type(error).__name__}: {error}")
    return ""


def copy_changes(folder: Path, destination: str, is_last: bool = True) -> int:
    """One pass: send what changed, remove checkpoints that were thinned out here; how many units were sent."""
    sent = _read_state(folder, destination)
    units = _list_units(folder)
    due = [unit for unit in units if _is_due(unit, sent.get(unit.name), is_last)]
    gone = [name for name in sent if name.startswith(f"{CHECKPOINTS}/") and name not in {unit.name for unit in units}]
    if not due and not gone:
        return 0
    target = open_target(destination)
    for group in _groups(due):
        _send(target, folder, group)
        sent |= {unit.name: {"signature": unit.signature, "time": time.time()} for unit in group}
        _write_state(folder, destination, sent)
    for name in gone:
        target.remove(name)
        del sent[name]
        _write_state(folder, destination, sent)
    return len(due)


def _groups(units: Sequence[Unit]) -> list[list[Unit]]:
    """Plain files go together; every checkpoint and every link by itself."""
    files = [unit for unit in units if unit.kind == "file"]
    return [*([files] if files else []), *([unit] for unit in units if unit.kind != "file")]


def _send(target: Target, folder: Path, group: Sequence[Unit]) -> None:
    first = group[0]
    path = folder / first.name
    try:
        if first.kind == "link":
            target.put_link(first.name, str(path.readlink()))
        elif first.kind == "checkpoint":
            files = sorted(entry for entry in path.rglob("*") if entry.is_file())
            target.put_folder(folder, first.name, [entry.relative_to(path).as_posix() for entry in files])
        else:
            target.put_files(folder, [unit.name for unit in group])
    except FileNotFoundError:
        raise DragomanError(f"{first.name} changed while it was copied") from None


def _is_due(unit: Unit, before: Mapping[str, Any] | None, is_last: bool) -> bool:
    if before is None:
        return True
    if before["signature"] == unit.signature:
        return False
    return is_last or time.time() - before["time"] >= unit.num_bytes / MAX_BYTES_PER_SECOND


def _list_units(folder: Path) -> list[Unit]:
    """The pointers last, after what they lead to; nothing that is still being written."""
    units: list[Unit] = []
    links: list[Unit] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if any(part.startswith(".") for part in name.parts):
            continue
        in_checkpoints = name.parts[0] == CHECKPOINTS
        try:
            if path.is_symlink():
                links.append(Unit(name.as_posix(), [str(path.readlink())], 0, "link"))
            elif in_checkpoints and len(name.parts) == 2 and path.is_dir():
                units.append(_checkpoint_unit(name.as_posix(), path))
            elif path.is_file() and not in_checkpoints:
                units.append(_file_unit(name.as_posix(), path))
        except FileNotFoundError:
            continue
    return [*units, *links]


def _file_unit(name: str, path: Path) -> Unit:
    stat = path.stat()
    return Unit(name, [stat.st_size, stat.st_mtime_ns], stat.st_size, "file")


def _checkpoint_unit(name: str, path: Path) -> Unit:
    stats = [(entry.name, entry.stat()) for entry in sorted(path.iterdir())]
    signature = [[file, stat.st_size, stat.st_mtime_ns] for file, stat in stats]
    return Unit(name, signature, sum(stat.st_size for _, stat in stats), "checkpoint")


def _read_state(folder: Path, destination: str) -> dict[str, Any]:
    try:
        state = json.loads((folder / STATE_NAME).read_text(encoding="utf-8"))
        is_same = state["destination"] == without_password(destination)
        return cast("dict[str, Any]", state["sent"]) if is_same else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _write_state(folder: Path, destination: str, sent: Mapping[str, Any]) -> None:
    with replaced_file(folder / STATE_NAME) as fresh:
        state = {"destination": without_password(destination), "sent": sent}
        fresh.write_text(json.dumps(state), encoding="utf-8")


MIRROR_OPS: Mapping[str, Callable[..., Any]] = {"check_mirror": check_mirror}
