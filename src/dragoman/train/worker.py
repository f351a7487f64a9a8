"""One rank of a run: `python -m dragoman.train.worker JOB`, started by a launcher."""

import os
import sys
import traceback
from contextlib import nullcontext

from dragoman.allocator import keep_freed_memory
from dragoman.dist.world import open_world
from dragoman.errors import DragomanError
from dragoman.run.folder import lock_run
from dragoman.train.job import Job
from dragoman.train.loop import train

INTERRUPTED = 130


def main(argument: str) -> int:
    """Join the others, train, and turn what happened into an exit code."""
    keep_freed_memory()
    world = open_world()
    job = Job.from_json(argument)
    try:
        with lock_run(job.folder) if world.is_first else nullcontext():
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
    sys.exit(main(sys.argv[1]))
