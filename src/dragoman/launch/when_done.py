"""`--when-done`: a command of the user's on the first host, after a run that ended well and lies where it should."""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress

from dragoman.run.folder import RunFolder
from dragoman.run.tail import Tail

Say = Callable[[str], None]
LAST_BYTES = 1 << 16  # of the events: the end is among the last


def finish(command: str | None, folder: RunFolder, exit_code: int, is_mirrored: bool, say: Say) -> None:
    """Run it if everything is in order. It may fail: the run has ended well all the same."""
    if command is None or exit_code != 0:
        return
    if not is_mirrored:
        # `poweroff` would take the only whole copy with it.
        say("warning: --when-done is left out: the mirror is not complete")
        return
    say("running the command of --when-done")
    environment = {**os.environ, "DRAGOMAN_RUN": str(folder.path.absolute()), "DRAGOMAN_REASON": end_reason(folder)}
    try:
        code = subprocess.run(command, shell=True, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        say(f"warning: the command of --when-done did not start: {error.strerror}")
        return
    if code:
        say(f"warning: the command of --when-done ended with exit code {code}")


def end_reason(folder: RunFolder) -> str:
    """As the run recorded it: max_steps, patience, max_minutes or max_cost."""
    for line in reversed(Tail(folder.events_path, LAST_BYTES).news()):
        with suppress(ValueError, KeyError, TypeError):
            event = json.loads(line)
            if event["kind"] == "finished":
                return str(event["detail"]["reason"])
    return "finished"
