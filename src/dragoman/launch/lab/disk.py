"""A host's own disk: what the machine holds can be read, what the host writes stays with it (overlayfs)."""

import contextlib
import os
import re
from pathlib import Path

from dragoman.launch.lab.namespaces import bind, mount


def private_folders(home: str, working_folder: str) -> list[str]:
    """The folders to put an overlay on, outermost first; one inside another, on the same disk, is covered."""
    wanted = sorted({os.path.realpath(folder) for folder in (home, working_folder) if Path(folder).is_dir()})
    found: list[str] = []
    for folder in wanted:
        is_covered = any(_is_inside(folder, other) and _same_disk(folder, other) for other in found)
        if folder != "/" and not is_covered:
            found.append(folder)
    return found


def own_disk(folders: list[str], store: Path, needs_user_namespace: bool) -> str:
    """Lay an overlay over each folder; gives what went wrong, or nothing."""
    for number, folder in enumerate(folders):
        layers = (store / f"layer-{number}", store / "memory" / f"layer-{number}")
        try:
            _overlay(folder, layers[0], needs_user_namespace)
        except OSError:
            # The lab's folder may lie inside the other one, or on a disk that cannot hold layers (a container's own).
            try:
                _mount_memory(store / "memory")
                _overlay(folder, layers[1], needs_user_namespace)
            except OSError as error:
                return f"{folder} is shared by all hosts: this kernel has no overlay for it ({error.strerror})"
    return ""


def empty_folders(folders: tuple[str, ...], store: Path) -> None:
    """Folders that start empty here, whatever the machine or another host has there."""
    for number, folder in enumerate(folders):
        own = store / f"own-{number}"
        own.mkdir(parents=True)
        Path(folder).mkdir(parents=True, exist_ok=True)
        bind(str(own), folder)


def _overlay(folder: str, layer: Path, needs_user_namespace: bool) -> None:
    hidden = _mounts_below(folder)
    handles = {path: os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in hidden}
    upper, work = layer / "upper", layer / "work"
    upper.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    _look_like(upper, Path(folder))
    options = f"lowerdir={_escape(folder)},upperdir={_escape(str(upper))},workdir={_escape(str(work))}"
    try:
        mount("overlay", folder, "overlay", options=options + (",userxattr" if needs_user_namespace else ""))
        for path, handle in handles.items():
            bind(f"/proc/self/fd/{handle}", path)
    finally:
        for handle in handles.values():
            os.close(handle)


def _look_like(upper: Path, folder: Path) -> None:
    """The topmost folder of an overlay has the owner and the mode of its upper layer."""
    status = folder.stat()
    with contextlib.suppress(OSError):
        os.chown(upper, status.st_uid, status.st_gid)
    upper.chmod(status.st_mode & 0o7777)


def _mount_memory(place: Path) -> None:
    place.mkdir(exist_ok=True)
    if not place.is_mount():
        mount("tmpfs", str(place), "tmpfs", options="mode=700")


def _mounts_below(folder: str) -> list[str]:
    """Folders below, on which other disks are mounted: an overlay shows only the empty place under them."""
    found: list[str] = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        path = _unescape(line.split()[4])
        if path != folder and _is_inside(path, folder) and Path(path).is_dir():
            found.append(path)
    return sorted(set(found))


def _unescape(field: bytes) -> str:
    r"""Linux writes blanks and backslashes as \ooo, and all other bytes as they are."""
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), field))


def _is_inside(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _same_disk(one: str, other: str) -> bool:
    return Path(one).stat().st_dev == Path(other).stat().st_dev


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
