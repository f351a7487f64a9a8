"""One rank of a run: `python -m dragoman.train.worker JOB`, started by a launcher."""

import ctypes
import os
import signal
import sys
import traceback
from contextlib import ExitStack

from dragoman.allocator import keep_freed_memory
from dragoman.dist.world import open_world
from dragoman.errors import DragomanError
from dragoman.run.folder import lock_run
from dragoman.train.job import Job
from dragoman.train.loop import train

INTERRUPTED = 130
PR_SET_PDEATHSIG = 1


def end_with_launcher() -> None:
    """Ask Linux for a SIGTERM when the process that started this one dies, so that no worker trains on alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def main(argument: str) -> int:
    """Join the others, train, and turn what happened into an exit code."""
    keep_freed_memory()
    world = open_world()
    job = Job.from_json(argument)
    try:
        with ExitStack() as claim:
            with world.together():  # no rank reads the folder before it is ours
                if world.is_first:
                    claim.enter_context(lock_run(job.folder))
            reason = train(job, world)
    except DragomanError as error:
        if os.environ.get("DRAGOMAN_DEBUG"):
            raise
        sys.stderr.write(f"error: {error.message}\n" + (f"  hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    except Exception:
        sys.stderr.write(f"rank {world.rank} on {world.host} failed:\n{traceback.format_exc()}")
        return 1
    world.close()
    return INTERRUPTED if reason == "interrupted" else 0


if __name__ == "__main__":
    end_with_launcher()
    sys.exit(main(sys.argv[1]))
