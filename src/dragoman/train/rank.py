"""One rank of a run, in a process of its own that a launcher started: joins the others, trains, gives an exit code."""

import atexit
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import NoReturn

from dragoman.allocator import keep_freed_memory
from dragoman.data.shards import open_shards
from dragoman.dist.failures import is_lost_peer
from dragoman.dist.world import World, open_world
from dragoman.errors import DragomanError
from dragoman.run.control import DIVERGED, INTERRUPTED, LOST_PEER, PREEMPTED
from dragoman.run.folder import lock_run
from dragoman.train.job import Job
from dragoman.train.loop import train
from dragoman.train.memory import naming_batch
from dragoman.train.microbatches import settle_microbatches


def leave(code: int) -> NoReturn:
    """End the process, but let the interpreter be: threads of gloo still drop Python objects, and where they meet one
    that is being taken apart they abort, now and then, a run that ended well."""
    atexit._run_exitfuncs()  # records of a run that failed may still be queued
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(argument: str, attempt: str | None = None) -> int:
    """Do the job that a launcher hands over, and again as a later attempt, if it says so."""
    job = Job.from_json(argument)
    return run_rank(lambda _: job if attempt is None else job.tried_again(int(attempt)))


def run_rank(find_job: Callable[[World], Job]) -> int:
    """Join the others and train; the exit code."""
    return as_rank(lambda world: _train(find_job(world), world))


def _train(job: Job, world: World) -> int:
    job.folder.path.mkdir(parents=True, exist_ok=True)  # every host has its own
    with ExitStack() as claim:
        with world.together():  # no rank reads the folder before it is ours
            if world.is_first:
                claim.enter_context(lock_run(job.folder))
        job = settle_microbatches(job, world)
        with naming_batch(job.cut_recipe.batch, world):
            reason = train(job, world)
    return {"interrupted": INTERRUPTED, "preempted": PREEMPTED, "diverged": DIVERGED}.get(reason, 0)


def as_rank(work: Callable[[World], int]) -> int:
    """Join the others, work, and turn what happened into an exit code."""
    keep_freed_memory()
    who = f"rank {os.environ.get('RANK', '0')}"
    try:
        world = open_world()
        who = world.name
        code = work(world)
    except DragomanError as error:
        if os.environ.get("DRAGOMAN_DEBUG"):
            raise
        sys.stderr.write(f"error: {error.message}\n" + (f"  hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if is_lost_peer(error) and not os.environ.get("DRAGOMAN_DEBUG"):
            sys.stderr.write(f"{who} lost its connection to another rank\n")
            return LOST_PEER
        sys.stderr.write(f"{who} failed:\n{traceback.format_exc()}")
        return 1
    world.close()
    return code


def agree_on_job(world: World, make: Callable[[], Job]) -> Job:
    """Every rank checks its own disk; rank 0's job is everybody's, for only its run folder knows earlier attempts."""
    with world.together():
        job = make()
        fingerprint = open_shards(job.data).manifest.fingerprint
    prints = world.gather([world.host, fingerprint])
    with world.together():
        others = [host for host, theirs in prints if theirs != prints[0][1]]
        if others and world.is_first:
            raise DragomanError(
                f"{', '.join(dict.fromkeys(others))} has other data than {world.host}: {job.data}",
                "copy the data folder to every host",
            )
    return Job.from_json(world.gather(job.to_json())[0])
