"""Sentences of many requests, translated together: no waiting for more, but whoever waits goes along.

Knows no HTTP and no model: it is given a function that translates.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass

from dragoman.translate.translator import Hypothesis
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.problem import Problem

# Enough to keep the engine at its speed, and little enough that whoever comes next does not wait for long.
BATCH_SENTENCES = 32
BATCH_CHARACTERS = 6_000
GATHER_SECONDS = 0.05  # for company, where another batch is computed anyway: a sentence alone costs twice as much
MAX_RETRY_SECONDS = 60.0

Best = list[Hypothesis]


@dataclass(frozen=True)
class Wanted:
    """Sentences go together only where all of this is alike."""

    num_best: int = 1
    alignments: bool = False


Translate = Callable[[list[str], Wanted], list[Best]]


class Job:
    """The sentences of one request, and the promise of their translations."""

    def __init__(self, sentences: Sequence[str], wanted: Wanted) -> None:
        self.sentences = sentences
        self.wanted = wanted
        self.future: Future[list[Best]] = Future()
        self.num_taken = 0
        self.num_done = 0
        self.results: list[Best] = [[] for _ in sentences]
        self.began = time.monotonic()

    @property
    def num_waiting(self) -> int:
        return len(self.sentences) - self.num_taken

    @property
    def next_length(self) -> int:
        return len(self.sentences[self.num_taken])

    @property
    def waiting_characters(self) -> int:
        return sum(map(len, self.sentences[self.num_taken :]))


class Batcher:
    """One per model, with a worker for each batch that its engine computes at the same time.

    `submit` and `drop` are for any thread.
    """

    def __init__(
        self,
        translate: Translate,
        limits: Limits,
        on_batch: Callable[[int], None] = lambda num_sentences: None,
        num_workers: int = 1,
    ) -> None:
        self._translate = translate
        self._limits = limits
        self._on_batch = on_batch
        self._jobs: deque[Job] = deque()
        self._unfinished: set[Job] = set()
        self._changed = threading.Condition()
        self._is_closed = False
        self._seconds_per_sentence: float | None = None  # lately, of all workers together
        self.num_waiting = 0
        self._num_running = 0
        self._waiting_characters = 0
        self._workers = [threading.Thread(target=self._work, daemon=True) for _ in range(num_workers)]
        for worker in self._workers:
            worker.start()

    def check_room(self, num_sentences: int = 1) -> None:
        """Raises 429 where so many more would wait too long, or take too much memory."""
        if self.num_waiting and (
            self.num_waiting + num_sentences > self._limits.max_queue
            or self._waiting_characters > self._limits.max_waiting_characters
            or self._seconds_until_done(num_sentences) > self._limits.timeout_seconds / 2
        ):
            raise Problem(429, "too many sentences are waiting; try again later", self.retry_seconds)

    def _seconds_until_done(self, num_more: int) -> float:
        """Half of a request's time is spared for those who come while it waits."""
        return (self.num_waiting + self._num_running + num_more) * (self._seconds_per_sentence or 0.0)

    @property
    def retry_seconds(self) -> float:
        """When half of those that wait now will be done, as far as the last batches tell."""
        return min(MAX_RETRY_SECONDS, self.num_waiting / 2 * (self._seconds_per_sentence or 0.0))

    def submit(self, sentences: Sequence[str], wanted: Wanted) -> Job:
        job = Job(sentences, wanted)
        if not sentences:
            job.future.set_result([])
            return job
        with self._changed:
            if self._is_closed:
                raise Problem(503, "the server is ending", 5)
            self.check_room(len(sentences))
            self._jobs.append(job)
            self._unfinished.add(job)
            self._count(job, 1)
            self._changed.notify()
        job.future.add_done_callback(lambda _: self._unfinished.discard(job))
        return job

    def drop(self, job: Job) -> None:
        """Nobody wants it any more: what waits of it is not translated."""
        self._remove(job)
        job.future.cancel()

    def abandon(self) -> None:
        """Whoever still waits is told that the server ends."""
        with self._changed:
            jobs = list(self._unfinished)
            self._jobs.clear()
            self.num_waiting = self._waiting_characters = 0
        for job in jobs:
            _fail(job, Problem(503, "the server is ending", 5))

    def close(self, seconds: float = 5.0) -> bool:
        """Whether the engine is free: a batch under way cannot be taken back, only waited for."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self.abandon()
        for worker in self._workers:
            worker.join(seconds)
        return not any(worker.is_alive() for worker in self._workers)

    def _remove(self, job: Job) -> None:
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                self._count(job, -1)

    def _count(self, job: Job, sign: int) -> None:
        self.num_waiting += sign * job.num_waiting
        self._waiting_characters += sign * job.waiting_characters

    def _work(self) -> None:
        while batch := self._next():
            self._run(batch)
            with self._changed:
                self._num_running -= len(batch)
                self._changed.notify_all()

    def _run(self, batch: list[tuple[Job, int]]) -> None:
        start = time.monotonic()
        try:
            results = self._translate([job.sentences[place] for job, place in batch], batch[0][0].wanted)
            self._note_speed(len(batch), time.monotonic() - start)
            self._on_batch(len(batch))
            self._deliver(batch, results)
        except Exception as error:  # whatever it is, others shall still be served
            jobs = list(dict.fromkeys(job for job, _ in batch))
            if len(jobs) > 1:
                for job in jobs:
                    self._run([entry for entry in batch if entry[0] is job])
            else:
                self._remove(jobs[0])
                _fail(jobs[0], error)

    def _next(self) -> list[tuple[Job, int]] | None:
        """Blocks until there is something to do; None when there will be nothing more."""
        with self._changed:
            while not self._is_closed:
                seconds = self._seconds_to_gather()
                if seconds is not None and seconds <= 0:
                    return self._take()
                self._changed.wait(seconds)
        return None

    def _seconds_to_gather(self) -> float | None:
        """How long to wait for more; None where nobody waits. A free engine waits for nobody."""
        if not self._jobs:
            return None
        if self._num_running == 0 or self.num_waiting >= BATCH_SENTENCES:
            return 0.0
        return self._jobs[0].began + GATHER_SECONDS - time.monotonic()

    def _take(self) -> list[tuple[Job, int]]:
        """One sentence of every request in turn, so that a long request leaves room for the others."""
        wanted = self._jobs[0].wanted
        share = -(-(self.num_waiting + self._num_running) // len(self._workers))  # the others are to have theirs
        most = min(BATCH_SENTENCES, share)
        turn = deque(_alike([job for job in self._jobs if job.wanted == wanted]))
        batch: list[tuple[Job, int]] = []
        num_characters = 0
        while turn and len(batch) < most and num_characters < BATCH_CHARACTERS:
            job = turn.popleft()
            batch.append((job, job.num_taken))
            num_characters += len(job.sentences[job.num_taken])
            job.num_taken += 1
            if job.num_waiting:
                turn.append(job)
        self._to_the_end({job for job, _ in batch})
        self.num_waiting -= len(batch)
        self._num_running += len(batch)
        self._waiting_characters -= num_characters
        return batch

    def _to_the_end(self, served: set[Job]) -> None:
        """Who had a turn and has more goes behind who had none."""
        others = [job for job in self._jobs if job not in served]
        again = [job for job in self._jobs if job in served and job.num_waiting]
        self._jobs = deque([*others, *again])

    def _deliver(self, batch: list[tuple[Job, int]], results: list[Best]) -> None:
        finished: list[Job] = []
        with self._changed:
            for (job, place), best in zip(batch, results, strict=True):
                job.results[place] = best
                job.num_done += 1
                if job.num_done == len(job.sentences):
                    finished.append(job)
        for job in finished:
            with suppress(InvalidStateError):  # dropped meanwhile
                job.future.set_result(job.results)

    def _note_speed(self, num_sentences: int, seconds: float) -> None:
        each = seconds / num_sentences / len(self._workers)
        known = self._seconds_per_sentence
        self._seconds_per_sentence = each if known is None else 0.9 * known + 0.1 * each


def _alike(jobs: list[Job]) -> list[Job]:
    """Whoever waits longest, then those whose sentences are about as long: a batch takes as long as its longest."""
    length = jobs[0].next_length
    return sorted(jobs, key=lambda job: (job is not jobs[0], abs(job.next_length - length)))


def _fail(job: Job, error: Exception) -> None:
    with suppress(InvalidStateError):
        job.future.set_exception(error)
