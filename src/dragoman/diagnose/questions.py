"""The eleven questions, each answered by one function of the facts. A missing record gives an answer that says so."""

from collections.abc import Callable

from dragoman.diagnose.answers.checkpoint import answer_files, answer_size
from dragoman.diagnose.answers.corpus import answer_corpus
from dragoman.diagnose.answers.duration import answer_duration, answer_step_time
from dragoman.diagnose.answers.network import answer_network, answer_traffic
from dragoman.diagnose.answers.processors import answer_use
from dragoman.diagnose.answers.schedule import answer_schedule
from dragoman.diagnose.answers.training import answer_overfitting, answer_trained
from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import Answer

ANSWERS: tuple[Callable[[Facts], Answer], ...] = (
    answer_duration,
    answer_trained,
    answer_overfitting,
    answer_use,
    answer_network,
    answer_schedule,
    answer_corpus,
    answer_files,
    answer_size,
    answer_step_time,
    answer_traffic,
)


def answer_questions(facts: Facts) -> list[Answer]:
    """Always eleven, in order."""
    return [answer(facts) for answer in ANSWERS]
