"""Sentences of many requests, translated together: no waiting for more, but whoever waits goes along.

Knows no HTTP and no model: it is given a function that translates.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from operator import itemgetter

from dragoman.translate.attempt import Attempt, Best
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.problem import Problem

# Enough to keep the engine at its speed, and little enough that whoever comes next does not wait for long.
BATCH_SENTENCES = 20
BATCH_CHARACTERS = 8_000
# For company, where another batch is computed anyway: a sentence alone costs twice as much. Those who were answered a
# moment ago often ask again at once.
GATHER_SECONDS = 0.05
AGAIN_SECONDS = 0.025  # for the first of them, whose answers go out one after the other
QUIET_SECONDS = 0.005  # when nobody has come for so long, nobody will
NUM_CHOICES = 64  # those of like length are sought among so many sentences: among all, some would wait for too long
# The next sentence of a request waits as if it had come later by so many times what a sentence takes: who asks for many
# leaves room for others, and waits for them no longer than for his own.
TURN_SENTENCES = 2
BATCH_COST_SENTENCES = 3  # so many more a batch takes, however few are in it: see benchmarks/batch_cost.py
MAX_RETRY_SECONDS = 60.0

Item = str | Attempt  # a sentence that is new, or one that has to be translated once more


@dataclass(frozen=True)
class Wanted:
    """Sentences go together only where all of this is alike."""

    num_best: int = 1
    alignments: bool = False


Translate = Callable[[list[Item], Wanted], list[Best | Attempt]]
Measure = Callable[[Sequence[str]], list[int]]  # how long sentences are for the engine


def in_characters(sentences: Sequence[str]) -> list[int]:
    return [len(sentence) for sentence in sentences]


class Job:
    """The sentences of one request, and the promise of their translations."""

    def __init__(self, sentences: Sequence[str], lengths: list[int], wanted: Wanted) -> None:
        self.items: list[Item] = list(sentences)
        self.lengths = lengths
        self.wanted = wanted
        self.future: Future[list[Best]] = Future()
        self.waiting = deque(range(len(sentences)))
        self.num_done = 0
        self.results: list[Best] = [[] for _ in sentences]
        self.began = time.monotonic()

    @property
    def is_under_way(self) -> bool:
        return len(self.waiting) < len(self.items)

    def turns(self, seconds_between: float) -> Iterator[float]:
        """When those of its sentences that wait came, or would have if they had come one by one."""
        num_taken = len(self.items) - len(self.waiting)
        return (self.began + seconds_between * number for number in range(num_taken, len(self.items)))

    def nearest(self, length: int) -> list[int]:
        """The places of those that wait, nearest to this length first."""
        return sorted(self.waiting, key=lambda place: abs(self.lengths[place] - length))

    @property
    def waiting_characters(self) -> int:
        return sum(len(self.items[place]) for place in self.waiting)


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
        measure: Measure = in_characters,
    ) -> None:
        self._translate = translate
        self._measure = measure
        self._limits = limits
        self._on_batch = on_batch
        self._jobs: set[Job] = set()  # of which something waits
        self._unfinished: set[Job] = set()
        self._changed = threading.Condition()
        self._is_closed = False
        self._lately = (0.0, 0.0)  # seconds of the last batches, their sentences and costs; the older the less
        self.num_waiting = 0
        self._num_running = 0
        self._waiting_characters = 0
        self._last_came = 0.0
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
        return (self.num_waiting + self._num_running + num_more) * self._seconds_per_sentence

    @property
    def retry_seconds(self) -> float:
        """When half of those that wait now will be done, as far as the last batches tell."""
        return min(MAX_RETRY_SECONDS, self.num_waiting / 2 * self._seconds_per_sentence)

    def submit(self, sentences: Sequence[str], wanted: Wanted) -> Job:
        job = Job(sentences, self._measure(sentences), wanted)
        if not sentences:
            job.future.set_result([])
            return job
        with self._changed:
            if self._is_closed:
                raise Problem(503, "the server is ending", 5)
            self.check_room(len(sentences))
            self._jobs.add(job)
            self._last_came = job.began
            self._unfinished.add(job)
            self._count(job, 1)
            self._changed.notify()
        job.future.add_done_callback(lambda _: self._unfinished.discard(job))
        return job

    def drop(self, job: Job) -> None:
        """Nobody wants it any more: what waits of it is not translated."""
        job.future.cancel()
        self._remove(job)

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
        self.num_waiting += sign * len(job.waiting)
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
            results = self._translate([job.items[place] for job, place in batch], batch[0][0].wanted)
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
        free_since = time.monotonic()
        with self._changed:
            while not self._is_closed:
                seconds = self._seconds_to_gather(free_since)
                if seconds is not None and seconds <= 0:
                    batch = self._take()
                    self._changed.notify()  # another worker may see to the rest
                    return batch
                self._changed.wait(seconds)
        return None

    def _seconds_to_gather(self, free_since: float) -> float | None:
        """How long to wait for more; None where nobody waits. An engine that does nothing waits for nobody."""
        if not self._jobs:
            return None
        if self._num_running == 0 or self.num_waiting >= NUM_CHOICES or any(job.is_under_way for job in self._jobs):
            return 0.0
        end = max(free_since, min(job.began for job in self._jobs)) + GATHER_SECONDS
        somebody_came = self._last_came > free_since
        quiet = self._last_came + QUIET_SECONDS if somebody_came else free_since + AGAIN_SECONDS
        return min(end, quiet) - time.monotonic()

    def _take(self) -> list[tuple[Job, int]]:
        """Of the sentences whose turn it is those of like length: a batch takes as long as its longest."""
        share = -(-(self.num_waiting + self._num_running) // len(self._workers))  # the others are to have theirs
        most = min(BATCH_SENTENCES, share)
        turns = self._turns()
        length = turns[0].lengths[turns[0].waiting[0]]  # of whoever waits longest
        nearest = {job: iter(job.nearest(length)) for job in dict.fromkeys(turns)}
        choices = [(job, next(nearest[job])) for job in turns]
        choices.sort(key=lambda choice: abs(choice[0].lengths[choice[1]] - length))
        batch: list[tuple[Job, int]] = []
        num_characters = 0
        for job, place in choices[:most]:
            if num_characters >= BATCH_CHARACTERS:
                break
            job.waiting.remove(place)
            num_characters += len(job.items[place])
            batch.append((job, place))
        self._jobs -= {job for job, _ in batch if not job.waiting}
        self.num_waiting -= len(batch)
        self._num_running += len(batch)
        self._waiting_characters -= num_characters
        return batch

    def _turns(self) -> list[Job]:
        """Whose sentences wait longest, each as often as it has a turn, and may go together with the first."""
        seconds_between = TURN_SENTENCES * self._seconds_per_sentence
        span = self._limits.timeout_seconds / 2  # all turns of a request are within it, or it would not be in time
        turns = (
            (turn, job)
            for job in self._jobs
            for turn in islice(job.turns(min(seconds_between, span / len(job.items))), NUM_CHOICES)
        )
        oldest = [job for _, job in nsmallest(NUM_CHOICES, turns, key=itemgetter(0))]
        return [job for job in oldest if job.wanted == oldest[0].wanted]

    def _deliver(self, batch: list[tuple[Job, int]], results: list[Best | Attempt]) -> None:
        finished: list[Job] = []
        with self._changed:
            for (job, place), result in zip(batch, results, strict=True):
                if isinstance(result, Attempt):
                    self._again(job, place, result)
                    continue
                job.results[place] = result
                job.num_done += 1
                if job.num_done == len(job.items):
                    finished.append(job)
        for job in finished:
            with suppress(InvalidStateError):  # dropped meanwhile
                job.future.set_result(job.results)

    def _again(self, job: Job, place: int, attempt: Attempt) -> None:
        """With one of the next batches, in its old turn: those of this one need not wait for it."""
        if job.future.done():  # nobody wants it any more
            return
        job.items[place] = attempt
        job.waiting.appendleft(place)
        self.num_waiting += 1
        self._waiting_characters += len(attempt)
        self._jobs.add(job)

    @property
    def _seconds_per_sentence(self) -> float:
        """Of all workers together, in full batches: one alone takes longer than one among many."""
        seconds, num_sentences = self._lately
        in_full_batches = 1 + BATCH_COST_SENTENCES / BATCH_SENTENCES
        return seconds / num_sentences * in_full_batches / len(self._workers) if num_sentences else 0.0

    def _note_speed(self, num_sentences: int, seconds: float) -> None:
        before = self._lately
        self._lately = (0.9 * before[0] + seconds, 0.9 * before[1] + num_sentences + BATCH_COST_SENTENCES)


def _fail(job: Job, error: Exception) -> None:
    with suppress(InvalidStateError):
        job.future.set_exception(error)
