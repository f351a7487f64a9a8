"""Many lines of `ip` or `tc` in one call."""

import subprocess
from collections.abc import Sequence

from dragoman.errors import DragomanError
from dragoman.launch.lab.requirements import tool_path

_LIMIT_SECONDS = 20


def run_batch(tool: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(
        [tool_path(tool), "-batch", "-"],
        check=False,
        input=text,
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
    )
    if done.returncode:
        said = " ".join(line for line in done.stderr.splitlines() if not line.startswith("Command failed"))
        raise DragomanError(f"{tool} cannot make the network: {said.strip()}", "the kernel lacks veth, bridge or tbf")
