"""The checkpoints of a run, each read in full and held against its checksums. Reads only; plain data, so that it can
cross from another host."""

from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.run.checkpoint_files import STATE, find_damage
from dragoman.run.folder import NAME_A_RUN, RunFolder
from dragoman.run.reader import list_checkpoints


def verify_checkpoints(run: str) -> list[dict[str, Any]]:
    """Oldest first: `name`, `bytes`, `time` (unix seconds of its writing), `pointers` to it, `damage` (None: whole),
    `counts` (False: not every host had written it)."""
    folder = RunFolder(Path(run).expanduser())
    if not folder.path.is_dir():
        raise DragomanError(f"there is no folder {folder.path}", NAME_A_RUN)
    last = folder.pointed_step("last")
    return [
        {
            "name": found.name,
            "bytes": found.num_bytes,
            "time": _time_of(found.path / STATE),
            "pointers": list(found.pointers),
            "damage": find_damage(found.path),
            "counts": found.step is not None and (last is None or found.step <= last),
        }
        for found in list_checkpoints(folder)
    ]


def _time_of(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
