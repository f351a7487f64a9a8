"""A sentence is tried with more and more care until nothing of it is lost."""

from dragoman.translate.attempt import HIDE_NUMBERS, LEAVE_OUT, Attempt
from dragoman.translate.parts import Hypothesis

SENTENCE = "Call 110 or 112 now"


def best(text):
    return [Hypothesis(text, 0.0)]


def test_what_lost_nothing_is_done():
    assert Attempt(SENTENCE).outcome(best("Jetzt 110 oder 112")) == best("Jetzt 110 oder 112")


def test_another_of_the_beam_that_lost_nothing_is_preferred():
    first, second, third = (Hypothesis(text, 0.0) for text in ("Jetzt 110", "Jetzt 110, 112", "Nun 110, 112"))
    assert Attempt(SENTENCE).outcome([first, second, third], 2) == [second, first]
    assert Attempt(SENTENCE).outcome([first, first], 2).lost == ["112"]


def test_what_lost_something_is_tried_with_more_care():
    again = Attempt(SENTENCE, "Ruf").outcome(best("Jetzt 110"))
    assert again == Attempt(SENTENCE, "Ruf", HIDE_NUMBERS, ["112"])
    assert not again.is_first and len(again) == len(SENTENCE)


def test_what_the_attempt_lost_that_lost_least_is_left_out():
    first = Attempt(SENTENCE).outcome(best("Jetzt 110"))
    worse = first.outcome(best("Jetzt"))
    assert (worse.care, worse.lost) == (LEAVE_OUT, ["112"])
    better = Attempt(SENTENCE).outcome(best("Jetzt")).outcome(best("Nun 112"))
    assert (better.care, better.lost) == (LEAVE_OUT, ["110"])
    assert first.outcome(best("Nun 110, 112")) == best("Nun 110, 112")


def test_the_last_attempt_is_taken_as_it_is():
    last = Attempt(SENTENCE, care=LEAVE_OUT, lost=["112"])
    assert last.outcome(best("Jetzt 112")) == best("Jetzt 112")
