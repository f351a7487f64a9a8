"""Sentences of many requests together: fair, bounded, and nobody's failure is everybody's."""

import threading
import time
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from dataclasses import replace

import pytest

from dragoman.translate.attempt import LEAVE_OUT, Attempt
from dragoman.translate.translator import Hypothesis
from dragoman.web.serve import batcher as module
from dragoman.web.serve.batcher import BATCH_SENTENCES, NUM_CHOICES, Batcher, Wanted
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.problem import Problem


class HeldTranslator:
    """Writes capitals, once it is let; notes what it was given."""

    def __init__(self):
        self.batches = []
        self.again = False
        self.may_go = threading.Semaphore(0)
        self.entered = threading.Semaphore(0)

    def __call__(self, sentences, wanted):
        self.batches.append((list(sentences), wanted))
        self.entered.release()
        assert self.may_go.acquire(timeout=10)
        if "fail" in sentences:
            raise RuntimeError("broken")
        if self.again:
            return [Attempt(sentence) for sentence in sentences]
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
    monkeypatch.setattr(module, "QUIET_SECONDS", 60.0)
    batcher = Batcher(held, Limits(), num_workers=2)
    occupy(batcher, held)
    batcher.submit(["a"], Wanted())
    batcher.submit(["b"], Wanted())
    assert not held.entered.acquire(timeout=0.1), "it waits for company"
    assert held.entered.acquire(timeout=10) and held.batches[1][0] == ["a", "b"]
    held.go(5)
    batcher.close()


def test_gathering_ends_when_nobody_comes_any_more(held, monkeypatch):
    monkeypatch.setattr(module, "GATHER_SECONDS", 60.0)
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.4)
    batcher = Batcher(held, Limits(), num_workers=2)
    occupy(batcher, held)
    batcher.submit(["a"], Wanted())
    assert not held.entered.acquire(timeout=0.1), "it waits for company"
    assert held.entered.acquire(timeout=10) and held.batches[1][0] == ["a"]
    held.go(5)
    batcher.close()


def test_those_who_were_just_answered_may_ask_again_and_go_along(held, monkeypatch):
    monkeypatch.setattr(module, "GATHER_SECONDS", 60.0)
    monkeypatch.setattr(module, "AGAIN_SECONDS", 60.0)
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    batcher = Batcher(held, Limits(), num_workers=2)
    running = [occupy(batcher, held), batcher.submit(["a"], Wanted())]
    assert held.entered.acquire(timeout=10)
    batcher.submit(["waits"], Wanted())
    held.go()
    wait([job.future for job in running], timeout=10, return_when=FIRST_COMPLETED)
    assert not held.entered.acquire(timeout=0.1), "who was answered has not asked again yet"
    batcher.submit(["again"], Wanted())
    assert held.entered.acquire(timeout=10) and held.batches[2][0] == ["waits", "again"]
    held.go(5)
    batcher.close()


@pytest.fixture
def patient(held, monkeypatch):
    """Two workers that gather for longer than any test lasts."""
    monkeypatch.setattr(module, "GATHER_SECONDS", 60.0)
    monkeypatch.setattr(module, "QUIET_SECONDS", 60.0)
    batcher = Batcher(held, Limits(), num_workers=2)
    yield batcher
    held.go(100)
    batcher.close()


def test_where_many_wait_nothing_is_gathered(patient, held):
    occupy(patient, held)
    patient.submit(["a"] * NUM_CHOICES, Wanted())
    assert held.entered.acquire(timeout=10) and len(held.batches[1][0]) == BATCH_SENTENCES


def test_the_second_sentence_of_a_request_does_not_wait_for_company(patient, held):
    job = patient.submit(["one", "two"], Wanted())
    assert all(held.entered.acquire(timeout=10) for _ in range(2)), "one for each worker"
    held.go(2)
    assert texts(job) == ["ONE", "TWO"]


class Careful:
    """Needs three attempts where "hard" is written, and notes who came with whom."""

    def __init__(self):
        self.batches = []
        self.entered = threading.Event()
        self.may_go = threading.Event()
        self.may_go.set()

    def __call__(self, items, wanted):
        self.entered.set()
        assert self.may_go.wait(10)
        attempts = [item if isinstance(item, Attempt) else Attempt(item) for item in items]
        self.batches.append([(attempt.sentence, attempt.care) for attempt in attempts])
        return [self._outcome(attempt) for attempt in attempts]

    def _outcome(self, attempt):
        if "hard" in attempt.sentence and attempt.care < LEAVE_OUT:
            return replace(attempt, care=attempt.care + 1)
        return [Hypothesis(attempt.sentence.upper(), 0.0)]


def test_what_must_be_tried_again_does_not_keep_its_batch_waiting():
    careful = Careful()
    batcher = Batcher(careful, Limits(), num_workers=1)
    job = batcher.submit(["easy", "hard", "hard too"], Wanted())
    assert texts(job) == ["EASY", "HARD", "HARD TOO"]
    assert [sorted(care for _, care in batch) for batch in careful.batches] == [[0, 0, 0], [1, 1], [2, 2]]
    assert batcher.num_waiting == 0
    batcher.close()


def test_what_must_be_tried_again_goes_before_what_never_had_a_turn(monkeypatch):
    monkeypatch.setattr(module, "BATCH_SENTENCES", 2)
    monkeypatch.setattr(module, "TURN_SENTENCES", 1e6)  # the second sentence comes last
    careful = Careful()
    careful.may_go.clear()
    batcher = Batcher(careful, Limits(), num_workers=1)
    occupied = batcher.submit(["busy"], Wanted())
    assert careful.entered.wait(10)
    jobs = [batcher.submit(sentences, Wanted()) for sentences in (["hard", "a"], ["b"], ["c"])]
    careful.may_go.set()
    assert [texts(job) for job in (occupied, *jobs)] == [["BUSY"], ["HARD", "A"], ["B"], ["C"]]
    batches = [[sentence for sentence, _ in batch] for batch in careful.batches]
    assert batches == [["busy"], ["hard", "b"], ["hard", "c"], ["hard", "a"]]
    batcher.close()


def test_a_dropped_request_is_not_tried_again(make, held):
    batcher = make()
    held.again = True
    job = occupy(batcher, held)
    batcher.drop(job)
    held.go(5)
    held.again = False
    assert texts(batcher.submit(["after"], Wanted())) == ["AFTER"]
    assert len(held.batches) == 2 and batcher.num_waiting == 0


@pytest.fixture
def batches_of(held, monkeypatch):
    """Batches of two, made of requests that wait; the last sign of a sentence is how long it is."""
    monkeypatch.setattr(module, "BATCH_SENTENCES", 2)

    def translate(*requests):
        batcher = Batcher(held, Limits(), measure=lambda sentences: [int(sentence[-1]) for sentence in sentences])
        occupied = batcher.submit(["busy1"], Wanted())
        assert held.entered.acquire(timeout=10)
        jobs = [batcher.submit(sentences, Wanted()) for sentences in requests]
        held.go(5)
        assert texts(occupied) == ["BUSY1"]
        assert [texts(job) for job in jobs] == [[text.upper() for text in sentences] for sentences in requests]
        batcher.close()
        return [batch for batch, _ in held.batches[1:]]

    return translate


def test_sentences_are_put_together_by_the_length_that_the_engine_sees(batches_of):
    found = batches_of(["short5"], ["short9"], ["very much longer5"], ["short8"])
    assert found == [["short5", "very much longer5"], ["short9", "short8"]]


def test_of_a_long_request_the_sentence_of_like_length_goes_first(batches_of):
    assert batches_of(["a5", "b9"], ["c1", "d8", "e4"]) == [["a5", "e4"], ["b9", "d8"], ["c1"]]


def test_nobody_is_passed_over_for_whoever_came_much_later(batches_of, monkeypatch):
    monkeypatch.setattr(module, "NUM_CHOICES", 3)
    assert batches_of(["a5"], ["b9"], ["c1"], ["late5"]) == [["a5", "b9"], ["c1", "late5"]]


def test_sentences_of_like_length_are_sought_among_those_that_wait_longest(batches_of, monkeypatch):
    """Not among so many requests: where each has several, those of the oldest would wait for all the others."""
    monkeypatch.setattr(module, "NUM_CHOICES", 4)
    monkeypatch.setattr(module, "TURN_SENTENCES", 0)  # all sentences of a request are as old as it is
    found = batches_of(["a5", "a9"], ["b1", "b2"], ["late5", "late9"])
    assert found == [["a5", "b2"], ["a9", "late9"], ["b1", "late5"]]


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
    batcher = make(Limits(timeout_seconds=3_600))  # a slow machine is not the matter here
    occupy(batcher, held)
    long = batcher.submit([f"long{n}" for n in range(1_000)], Wanted())
    time.sleep(0.1)  # so long takes a sentence
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
    job.future.result(10)  # 0.1 s alone is 0.03 s among many: seventeen in half a second, of which one is under way
    occupy(batcher, held)
    batcher.submit(["a"] * 5, Wanted())
    batcher.submit(["a"], Wanted())
    with pytest.raises(Problem) as refused:
        batcher.submit(["b"] * 12, Wanted())
    assert refused.value.status == 429


def test_one_that_was_slow_alone_keeps_nobody_out(make, held):
    """A batch takes much longer than one sentence, but not as many times longer as it has sentences."""
    batcher = make(Limits(timeout_seconds=20.0))
    for _ in range(5):
        job = occupy(batcher, held)
        time.sleep(0.1)
        held.go()
        job.future.result(10)
    occupy(batcher, held)
    jobs = [batcher.submit(["a"] * 4, Wanted()) for _ in range(50)]
    held.go(50)
    assert [texts(job) for job in jobs] == [["A"] * 4] * 50


def test_who_asks_for_several_does_not_wait_behind_all_who_came_later_again_and_again(make, held, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SENTENCES", 2)
    batcher = make(Limits(timeout_seconds=3_600))
    for _ in range(20):
        held.go()
        assert texts(occupy(batcher, held)) == ["BUSY"]
    occupy(batcher, held)
    three = batcher.submit(["one", "two", "three"], Wanted())
    time.sleep(0.1)
    later = [batcher.submit([f"later{n}"], Wanted()) for n in range(20)]
    held.go(4)
    assert texts(three) == ["ONE", "TWO", "THREE"]
    assert sum(job.future.done() for job in later) <= 3, "one in each of its batches"
    held.go(20)
    assert texts(later[-1]) == ["LATER19"]


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


def test_a_long_request_has_a_turn_for_every_sentence_and_not_one_a_batch(held, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SENTENCES", 3)
    monkeypatch.setattr(module, "TURN_SENTENCES", 0)  # all of its sentences are as old as it is
    batcher = Batcher(held, Limits())
    occupy(batcher, held)
    long = batcher.submit(["d"] * 6, Wanted())
    short = [batcher.submit(["s"], Wanted()) for _ in range(3)]
    held.go(10)
    assert [texts(job) for job in (long, *short)] == [["D"] * 6, ["S"], ["S"], ["S"]]
    assert [batch for batch, _ in held.batches[1:]] == [["d"] * 3, ["d"] * 3, ["s"] * 3]
    batcher.close()


def test_the_turns_of_a_request_end_while_there_is_time_for_it(held, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SENTENCES", 1)
    monkeypatch.setattr(module, "TURN_SENTENCES", 1e6)
    batcher = Batcher(held, Limits(timeout_seconds=1.0))
    held.go()
    assert texts(occupy(batcher, held)) == ["BUSY"]
    occupy(batcher, held)
    two = batcher.submit(["one", "two"], Wanted())
    at_once = batcher.submit(["at once"], Wanted())
    time.sleep(0.3)  # the turns of two sentences are 0.25 s apart
    later = batcher.submit(["later"], Wanted())
    held.go(10)
    assert [texts(job) for job in (two, at_once, later)] == [["ONE", "TWO"], ["AT ONCE"], ["LATER"]]
    assert [batch for batch, _ in held.batches[2:]] == [["one"], ["at once"], ["two"], ["later"]]
    batcher.close()
