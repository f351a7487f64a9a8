"""Files of a report, replaced whole or not at all."""

from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.run.folder import replaced_file


def replace_text(path: Path, text: str) -> None:
    # A lone surrogate, as a file name may hold, is no reason to write nothing.
    replace_bytes(path, text.encode("utf-8", errors="replace"))


def replace_bytes(path: Path, content: bytes) -> None:
    try:
        with replaced_file(path) as fresh:
            fresh.write_bytes(content)
    except OSError as error:
        problem = f"cannot write {path}: {error.strerror}"
        raise DragomanError(problem, "name another file with --out") from None
