"""Worker processes for tasks that do not know each other; with one worker everything runs in this process.

Knows functions and tasks, nothing of what they do.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from typing import TypeVar

from dragoman.data.workfolder import InterruptedWorkError

Task = TypeVar("Task")
Result = TypeVar("Result")


class Workers:
    """A pool that takes tasks no faster than it finishes them, so that waiting tasks fill no memory."""

    def __init__(self, num_workers: int, pool: ProcessPoolExecutor | None) -> None:
        self.num_workers = num_workers
        self._pool = pool

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results as they come, in no order."""
        if self._pool is None:
            yield from map(function, tasks)
            return
        waiting: set[Future[Result]] = set()
        try:
            for task in tasks:
                waiting.add(self._pool.submit(function, task))
                if len(waiting) >= self.num_workers + 2:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            raise InterruptedWorkError(
                "a worker process was killed, perhaps for want of memory",
                "run the same command again: it goes on where it was; --workers 1 needs least memory",
            ) from None
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def start_workers(num_workers: int) -> Generator[Workers]:
    """Spawned, not forked: a fork would share locks with the threads of this process."""
    if num_workers == 1:
        yield Workers(1, None)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(num_workers, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            yield Workers(num_workers, pool)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """A pool's worker outlives a parent killed by SIGKILL, unless it watches; Ctrl-C ends it without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
