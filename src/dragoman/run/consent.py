"""A question that a run asks before its first step, and the answer: two small files, since who trains has no terminal.

Rank 0 asks; whoever shows the run on a terminal answers, from this machine or through the first host.
"""

import contextlib
import time
from pathlib import Path

from dragoman.run.folder import RunFolder, replaced_file

POLL_SECONDS = 0.1


def ask(folder: RunFolder, question: str, patience_seconds: float) -> bool | None:
    """Put a question and wait for its answer; None where nobody gave one in time."""
    forget(folder)
    with replaced_file(_question(folder)) as fresh:
        fresh.write_text(question, encoding="utf-8")
    deadline = time.monotonic() + patience_seconds
    try:
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                return _answer(folder).read_text(encoding="utf-8") == "yes"
            time.sleep(POLL_SECONDS)
        return None
    finally:
        forget(folder)


def open_question(folder: RunFolder) -> str | None:
    """What waits for an answer, if anything does."""
    try:
        return None if _answer(folder).exists() else _question(folder).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def answer(folder: RunFolder, is_yes: bool) -> None:
    with replaced_file(_answer(folder)) as fresh:
        fresh.write_text("yes" if is_yes else "no", encoding="utf-8")


def forget(folder: RunFolder) -> None:
    """A question that an attempt left behind when it was killed is nobody's any more."""
    for path in (_question(folder), _answer(folder)):
        path.unlink(missing_ok=True)


def _question(folder: RunFolder) -> Path:
    return folder.path / ".question"


def _answer(folder: RunFolder) -> Path:
    return folder.path / ".answer"
