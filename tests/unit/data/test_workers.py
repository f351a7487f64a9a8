import os

import pytest

from dragoman.data.workers import start_workers
from dragoman.errors import DragomanError


def double(number: int) -> int:
    return 2 * number


def refuse(number: int) -> int:
    raise DragomanError(f"not {number}", "another number")


def die(number: int) -> int:
    os._exit(9)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_all_tasks_are_done(num_workers: int):
    with start_workers(num_workers) as workers:
        assert sorted(workers.run(double, range(30))) == list(range(0, 60, 2))


def test_tasks_are_taken_as_they_are_done():
    taken = []

    def tasks():
        for number in range(100):
            taken.append(number)
            yield number

    with start_workers(2) as workers:
        results = workers.run(double, tasks())
        next(results)
        assert len(taken) <= 4, "waiting tasks would fill the memory"
        results.close()


def test_errors_come_back_with_their_hint():
    with start_workers(2) as workers, pytest.raises(DragomanError, match="not 7") as caught:
        list(workers.run(refuse, [7]))
    assert caught.value.hint == "another number"


def test_a_killed_worker_is_explained():
    with start_workers(2) as workers, pytest.raises(DragomanError, match="a worker process was killed") as caught:
        list(workers.run(die, [1]))
    assert "goes on where it was" in caught.value.hint
