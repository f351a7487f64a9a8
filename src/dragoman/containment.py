"""Names read from a file stay in its folder: what a stranger's manifest names must not lead to other files."""

import os
from pathlib import Path


def is_inside(folder: Path, name: str) -> bool:
    """Whether `name` is a plain name and, followed through links, still in the folder."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        return False
    # Not Path.resolve, which raises where links lead in a circle.
    return Path(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(folder))
