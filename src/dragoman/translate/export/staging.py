"""A folder that appears whole or not at all. Knows files, not what is in them."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import DragomanError


@contextmanager
def staged(out: Path) -> Generator[Path]:
    """A hidden folder beside the final one to work in; it goes when the block ends, however it ends."""
    if out.exists() or out.is_symlink():
        raise DragomanError(f"{out} exists already", "name a new folder with --out, or remove that one")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        workplace = Path(tempfile.mkdtemp(prefix=f".{out.name}.partial-", dir=out.parent))
    except OSError as error:
        raise DragomanError(f"cannot write to {out.parent}: {error.strerror}", "name another folder") from None
    try:
        yield workplace
    except OSError as error:
        raise DragomanError(f"cannot write to {workplace}: {error.strerror or error}", "make room there") from None
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def publish(folder: Path, out: Path) -> None:
    """Give a finished folder its final name, after its bytes are on the disk."""
    for path in folder.iterdir():
        path.chmod(0o644)  # safetensors writes for the owner alone
        _sync(path)
    _sync(folder)
    if out.exists():
        raise DragomanError(f"{out} was made by somebody else meanwhile", "name a new folder with --out")
    folder.chmod(0o755)
    folder.rename(out)
    _sync(out.parent)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
