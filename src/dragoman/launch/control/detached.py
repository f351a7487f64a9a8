"""Processes that outlive whoever starts them: own session, the task on their input, their output in a file."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def start_detached(module: str, task: dict[str, Any], output: Path) -> subprocess.Popen[bytes]:
    """`python -m module`; the task goes in through its input, where no list of processes shows it."""
    with output.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    assert process.stdin is not None
    process.stdin.write(json.dumps(task).encode())
    process.stdin.close()
    return process


def read_task() -> dict[str, Any]:
    """The other side."""
    return json.loads(sys.stdin.buffer.read())


def last_lines(path: Path, num_lines: int = 5) -> list[str]:
    """The end of such an output, to show when something went wrong."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-num_lines:]
    except OSError:
        return []
