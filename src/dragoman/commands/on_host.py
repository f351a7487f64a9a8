"""The other side of a session: `python -m dragoman.commands.on_host`, started through ssh, answers until it is left.

Not for people. This file puts the ops together; each is a function of the layer it belongs to.
"""

import contextlib
import os
import signal
from pathlib import Path

from dragoman.launch.control.run_ops import RUN_OPS
from dragoman.launch.copying.fetching import FETCH_OPS
from dragoman.launch.copying.mirror import MIRROR_OPS
from dragoman.launch.copying.push import PUSH_OPS
from dragoman.launch.hosts.checkup import CHECKUP_OPS
from dragoman.launch.hosts.facts import host_facts, inspect_folders
from dragoman.launch.hosts.probe import probe_ops
from dragoman.launch.hosts.session import serve_session
from dragoman.run.verify import verify_checkpoints
from dragoman.train.job import open_run
from dragoman.web.watch.far_side import WATCH_OPS


def main() -> None:
    """Serve until the input ends."""
    # The near side decides when this ends. Not SIG_IGN: what is started from here would inherit that.
    signal.signal(signal.SIGINT, lambda *_: None)
    with contextlib.suppress(OSError, RuntimeError):
        os.chdir(Path.home())  # relative paths of a run begin at the login folder
    with probe_ops() as probes:
        folders = {"facts": host_facts, "inspect": inspect_folders, "open_run": open_run}
        folders |= {"verify_checkpoints": verify_checkpoints}
        serve_session(
            {**folders, **CHECKUP_OPS, **RUN_OPS, **PUSH_OPS, **FETCH_OPS, **MIRROR_OPS, **WATCH_OPS, **probes}
        )


if __name__ == "__main__":
    main()
