"""Sentences of many requests together: fair, bounded, and nobody's failure is everybody's."""

import threading
import time
from concurrent.futures import CancelledError

import pytest

from dragoman.translate.translator import Hypothesis
from dragoman.web.serve import batcher as module
from dragoman.web.serve.batcher import BATCH_SENTENCES, Batcher, Wanted
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.problem import Problem


class HeldTranslator:
    """Writes capitals, once it is let; notes what it was given."""

    def __init__(self):
        self.batches = []
        self.may_go = threading.Semaphore(0)
        self.entered = threading.Semaphore(0)

    def __call__(self, sentences, wanted):
        self.batches.append((list(sentences), wanted))
        self.entered.release()
        assert self.may_go.acquire(timeout=10)
        if "fail" in sentences:
            raise RuntimeError("broken")
        return [[Hypothesis(sentence.upper(), 0.0)] * wanted.num_best for sentence in sentences]

    def go(self, times=1):
        self.may_go.release(times)


@pytest.fixture
def held():
    return HeldTranslator()


@pytest.fixture
def make(held):
    made = []

    def start(limits=None, **options):
        batcher = Batcher(held, limits or Limits(), num_workers=1, **options)
        made.append(batcher)
        return batcher

    yield start
    held.go(1000)
    for batcher in made:
        batcher.close()


def occupy(batcher, held):
    """The engine is busy with one sentence; all that comes now waits."""
    job = batcher.submit(["busy"], Wanted())
    assert held.entered.acquire(timeout=10)
    return job


def texts(job):
    return [best[0].text for best in job.future.result(timeout=10)]


def test_a_free_engine_does_not_wait_for_company(make, held):
    job = occupy(make(), held)
    held.go()
    assert texts(job) == ["BUSY"] and held.batches == [(["busy"], Wanted())]


def test_those_who_wait_go_together_and_everybody_gets_his_own(make, held):
    batcher = make()
    occupy(batcher, held)
    jobs = [batcher.submit([f"a{n}", f"b{n}"], Wanted()) for n in range(5)]
    assert batcher.num_waiting == 10
    held.go(2)
    assert [texts(job) for job in jobs] == [[f"A{n}", f"B{n}"] for n in range(5)]
    assert len(held.batches) == 2 and batcher.num_waiting == 0


def test_beside_a_batch_that_is_computed_another_gathers_for_a_moment_only(held, monkeypatch):
    monkeypatch.setattr(module, "GATHER_SECONDS", 0.4)
    batcher = Batcher(held, Limits(), num_workers=2)
    occupy(batcher, held)
    batcher.submit(["a"], Wanted())
    batcher.submit(["b"], Wanted())
    assert not held.entered.acquire(timeout=0.1), "it waits for company"
    assert held.entered.acquire(timeout=10) and held.batches[1][0] == ["a", "b"]
    held.go(5)
    batcher.close()


def test_a_full_batch_does_not_wait(held, monkeypatch):
    monkeypatch.setattr(module, "GATHER_SECONDS", 60.0)
    batcher = Batcher(held, Limits(), num_workers=2)
    occupy(batcher, held)
    batcher.submit(["a"] * (2 * BATCH_SENTENCES), Wanted())
    assert held.entered.acquire(timeout=10) and len(held.batches[1][0]) == BATCH_SENTENCES
    held.go(5)
    batcher.close()


def test_sentences_of_like_length_go_together_and_the_oldest_is_always_among_them(make, held, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SENTENCES", 3)
    batcher = make()
    occupy(batcher, held)
    waiting = ("mid" * 3, "s", "long" * 10, "middle" * 2, "tiny", "ninesigns")
    jobs = [batcher.submit([text], Wanted()) for text in waiting]
    held.go(5)
    assert [texts(job) for job in jobs] == [[text.upper()] for text in waiting]
    assert held.batches[1][0] == ["mid" * 3, "ninesigns", "middle" * 2]


def test_other_options_are_another_batch(make, held):
    batcher = make()
    occupy(batcher, held)
    plain, more = batcher.submit(["a"], Wanted()), batcher.submit(["b"], Wanted(num_best=3))
    held.go(3)
    assert texts(plain) == ["A"] and len(more.future.result(10)[0]) == 3
    assert [wanted.num_best for _, wanted in held.batches] == [1, 1, 3]


def test_a_long_request_does_not_keep_short_ones_waiting(make, held):
    batcher = make()
    occupy(batcher, held)
    long = batcher.submit([f"long{n}" for n in range(1_000)], Wanted())
    held.go()
    assert held.entered.acquire(timeout=10)  # the long one is under way
    short = batcher.submit(["short"], Wanted())
    other = batcher.submit(["other"], Wanted(alignments=True))
    held.go()
    assert held.entered.acquire(timeout=10)
    held.go()
    assert texts(short) == ["SHORT"], "in the turn after the one that ran"
    held.go()
    assert texts(other) == ["OTHER"], "before the long one goes on"
    assert not long.future.done() and all(len(sentences) <= BATCH_SENTENCES for sentences, _ in held.batches)
    held.go(100)
    assert texts(long) == [f"LONG{n}" for n in range(1_000)]


def test_very_long_sentences_go_in_smaller_batches(make, held):
    batcher = make()
    occupy(batcher, held)
    job = batcher.submit(["x" * 5_000] * 6, Wanted())
    held.go(10)
    job.future.result(10)
    assert [len(sentences) for sentences, _ in held.batches[1:]] == [2, 2, 2]


def test_a_full_queue_refuses_and_says_when_to_come_back(make, held):
    batcher = make(Limits(max_queue=10))
    occupy(batcher, held)
    batcher.submit(["a"] * 9, Wanted())
    with pytest.raises(Problem) as refused:
        batcher.submit(["b"] * 2, Wanted())
    assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) >= 1
    batcher.submit(["b"], Wanted())
    assert batcher.num_waiting == 10


def test_no_more_waits_than_can_be_done_in_time(make, held):
    batcher = make(Limits(timeout_seconds=1.0))
    job = occupy(batcher, held)
    time.sleep(0.1)
    held.go()
    job.future.result(10)  # 0.1 s a sentence: five in half a second, of which one is under way
    occupy(batcher, held)
    batcher.submit(["a"] * 2, Wanted())
    batcher.submit(["a"], Wanted())
    with pytest.raises(Problem) as refused:
        batcher.submit(["b"] * 2, Wanted())
    assert refused.value.status == 429


def test_the_queue_is_bounded_in_characters_too(make, held):
    batcher = make(Limits(max_characters=10))
    occupy(batcher, held)
    batcher.submit(["x" * 250], Wanted())
    with pytest.raises(Problem):
        batcher.submit(["y"], Wanted())


def test_what_nobody_waits_for_is_not_translated(make, held):
    batcher = make()
    occupy(batcher, held)
    gone, stays = batcher.submit(["gone"] * 40, Wanted()), batcher.submit(["stays"], Wanted())
    batcher.drop(gone)
    assert batcher.num_waiting == 1
    held.go(5)
    assert texts(stays) == ["STAYS"] and ("gone" not in str(held.batches))
    with pytest.raises(CancelledError):
        gone.future.result(1)


def test_dropped_while_it_is_translated(make, held):
    batcher = make()
    busy = occupy(batcher, held)
    batcher.drop(busy)
    held.go()
    after = batcher.submit(["after"], Wanted())
    held.go()
    assert texts(after) == ["AFTER"]


def test_a_failure_is_told_to_those_it_hit_and_to_nobody_else(make, held):
    batcher = make()
    occupy(batcher, held)
    bad, good = batcher.submit(["fail", *["x"] * 100], Wanted()), batcher.submit(["good"], Wanted())
    held.go(4)
    with pytest.raises(RuntimeError, match="broken"):
        bad.future.result(10)
    assert texts(good) == ["GOOD"], "tried again without the one that failed"
    assert batcher.num_waiting == 0, "what failed is not tried to its end"


def test_the_end_is_told_to_who_waits(make, held):
    batcher = make()
    running = occupy(batcher, held)
    waiting = batcher.submit(["waits"], Wanted())
    batcher.abandon()
    for job in (running, waiting):
        with pytest.raises(Problem) as ended:
            job.future.result(1)
        assert ended.value.status == 503
    held.go(5)
    batcher.close()
    with pytest.raises(Problem):
        batcher.submit(["late"], Wanted())


def test_nothing_to_translate_is_done_at_once(make):
    assert make().submit([], Wanted()).future.result(0) == []


def test_batches_are_counted(make, held):
    sizes = []
    batcher = make(on_batch=sizes.append)
    held.go(5)
    batcher.submit(["a", "b"], Wanted()).future.result(10)
    deadline = time.monotonic() + 5
    while sizes != [2] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sizes == [2]
