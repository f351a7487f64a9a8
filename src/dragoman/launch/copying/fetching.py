"""Brings a run home from a host: what differs is copied, every file is verified, and what is missing is named.

`fetch_run` is the near side, `list_run` runs on the host.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256
from dragoman.launch.copying.bars import Bars
from dragoman.launch.copying.transfer import BLOCK_BYTES, Hashes, Listing, reading, receive_files, safe_path
from dragoman.launch.hosts.facts import absolute_path
from dragoman.launch.hosts.hosts import Host
from dragoman.launch.hosts.session import HostSession
from dragoman.run.completeness import find_gaps, find_left_out
from dragoman.run.control import is_alive, read_control
from dragoman.run.folder import RunFolder, is_locked, open_run_folder
from dragoman.run.reader import read_manifest

NO_RECORDS = ("checkpoints/", "tensorboard/", "report")
LIST_SECONDS = 1800.0  # to hash what may be many gigabytes on a slow disk
MAX_ROUNDS = 2  # a file that was replaced while it was copied is copied once more
OTHER_PLACE = "name another folder with --to"


@dataclass(frozen=True)
class Fetched:
    """What came home. `missing` is empty when the machines may be cancelled."""

    folder: Path
    num_files: int
    num_copied: int
    copied_bytes: int
    missing: tuple[str, ...]
    notes: tuple[str, ...]  # what the other hosts keep and a run can do without
    hosts: tuple[str, ...]  # of the run; empty where the run has no record of them


def fetch_run(host: Host, path: str, to: Path | None, say: Callable[[str], None]) -> Fetched:
    """Copy the run folder `path` of a host to `to`, or to its own name in the current folder."""
    num_copied = copied_bytes = 0
    with HostSession(host) as session:
        found = _list(session, path)
        folder = to or Path(Path(found["path"]).name)
        _check_destination(folder, found["created"])
        lacking = _lacking(folder, found["files"])
        for _ in range(MAX_ROUNDS):
            if not lacking:
                break
            arrived = _copy(host, found["path"], lacking, folder, say)
            num_copied += len(arrived)
            copied_bytes += sum(lacking[name][0] for name in arrived)
            found = found if arrived.keys() == lacking.keys() else _list(session, path)
            lacking = _lacking(folder, found["files"])
    changed = [f"{name} changed while it was copied" for name in lacking]
    missing = [*_unfinished(found), *changed, *find_gaps(folder)]
    numbers = (len(found["files"]), num_copied, copied_bytes)
    return Fetched(folder, *numbers, tuple(missing), tuple(find_left_out(folder)), tuple(found["members"]))


def _list(session: HostSession, path: str) -> dict[str, Any]:
    found: dict[str, Any] = session.call("list_run", timeout_seconds=LIST_SECONDS, path=path)
    # The manifest comes first: by it the next fetch knows what this one left when it broke off.
    manifest = RunFolder(Path()).manifest_path.name
    files = sorted(found["files"], key=lambda entry: entry[0] != manifest)
    return {**found, "files": {name: (num_bytes, sha256) for name, num_bytes, sha256 in files}}


def _lacking(folder: Path, listing: Listing) -> dict[str, tuple[int, str]]:
    return {name: entry for name, entry in listing.items() if not _is_here(folder, name, *entry)}


def _copy(host: Host, path: str, wanted: Listing, folder: Path, say: Callable[[str], None]) -> Hashes:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DragomanError(f"cannot write to {folder}: {error.strerror}", OTHER_PLACE) from None
    try:
        with Bars() as bars:
            num_bytes = sum(size for size, _ in wanted.values())
            return receive_files(host, path, wanted, folder, bars.add(host.name, num_bytes))
    except DragomanError as error:
        say(f"{error.message}; what has arrived is kept")
        raise


def _is_here(folder: Path, name: str, num_bytes: int, sha256: str) -> bool:
    path = safe_path(folder, name)
    with reading(path):
        if sha256.startswith("-> "):
            return path.is_symlink() and str(path.readlink()) == sha256.removeprefix("-> ")
        return path.is_file() and path.stat().st_size == num_bytes and file_sha256(path) == sha256


def _unfinished(found: Mapping[str, Any]) -> list[str]:
    if found["is_going_on"]:
        return ["the run is still going on: fetch it again when it has ended"]
    if found["state"] != "ended":
        return [f"the controller of the run died ({found['state']!r} was its last word): other hosts may hold records"]
    return []


def _check_destination(folder: Path, created: float) -> None:
    """Missing, an earlier copy of the same run, or empty but for what a fetch that broke off was writing."""
    try:
        is_empty = all(entry.name.startswith(".") for entry in folder.iterdir())
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise DragomanError(f"{folder} is a file, or lies below one", OTHER_PLACE) from None
    except OSError as error:
        raise DragomanError(f"cannot read {folder}: {error.strerror}", OTHER_PLACE) from None
    here = RunFolder(folder)
    # A first fetch that broke off may have left checkpoints without a manifest.
    if here.manifest_path.exists():
        if read_manifest(here).created != created:
            raise DragomanError(f"{folder} holds another run", OTHER_PLACE)
    elif not is_empty and not here.checkpoints_path.exists():
        raise DragomanError(f"{folder} holds other files", OTHER_PLACE)


def list_run(path: str, records_only: bool = False) -> dict[str, Any]:
    """On the host: every file of the run with its size and sha256, and whether the run still goes on.

    `records_only` leaves out weights and event files, which take long to read, and reports.
    """
    root = absolute_path(path)
    folder = open_run_folder(root)
    control = read_control(folder)
    is_controlled = control is not None and control.state != "ended" and is_alive(control, folder)
    names = [name for name in sorted(_names(root)) if not (records_only and name.startswith(NO_RECORDS))]
    return {
        "path": str(root),
        "created": read_manifest(folder).created,
        "state": control.state if control else "ended",
        "members": [member["name"] for member in control.members] if control else [],
        "is_going_on": is_locked(folder) or is_controlled,
        "files": [entry for name in names if (entry := _describe(root, name)) is not None],
    }


def _names(root: Path) -> list[str]:
    """Whatever begins with a dot is being written, or is of this machine only."""
    entries = (entry for entry in root.rglob("*") if entry.is_symlink() or entry.is_file())
    names = (entry.relative_to(root) for entry in entries)
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def _describe(root: Path, name: str) -> tuple[str, int, str] | None:
    path = root / name
    try:
        if path.is_symlink():
            return name, 0, f"-> {path.readlink()}"
        num_bytes = path.stat().st_size
        return name, num_bytes, _sha256(path, num_bytes)
    except FileNotFoundError:  # thinned out a moment ago
        return None
    except OSError as error:
        # Left out, it would be missing at home and nobody would know.
        raise DragomanError(f"cannot read {path}: {error.strerror}", "let the user of ssh read it") from None


def _sha256(path: Path, num_bytes: int) -> str:
    """Of so many bytes: a file may grow while it is read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while num_bytes and (block := file.read(min(num_bytes, BLOCK_BYTES))):
            digest.update(block)
            num_bytes -= len(block)
    return digest.hexdigest()


FETCH_OPS: Mapping[str, Callable[..., Any]] = {"list_run": list_run}
