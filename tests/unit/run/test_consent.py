"""A question before the first step: asked by a rank, answered by whoever has a terminal."""

import threading
import time

from dragoman.run.consent import answer, ask, forget, open_question
from dragoman.run.folder import create_run_folder


def answered(folder, is_yes: bool) -> bool | None:
    got: list[bool | None] = []
    asking = threading.Thread(target=lambda: got.append(ask(folder, "31 s a step. Continue?", 10)))
    asking.start()
    while open_question(folder) is None:
        time.sleep(0.01)
    assert open_question(folder) == "31 s a step. Continue?"
    answer(folder, is_yes)
    assert open_question(folder) is None
    asking.join()
    return got[0]


def test_yes_is_yes_and_no_is_no_and_nothing_is_left(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    assert answered(folder, True) is True
    assert answered(folder, False) is False
    assert [path.name for path in folder.path.iterdir()] == ["checkpoints"]


def test_silence_is_neither(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    assert ask(folder, "?", 0.05) is None
    assert open_question(folder) is None


def test_an_old_answer_is_not_taken_for_a_new_one(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    answer(folder, True)
    assert ask(folder, "?", 0.05) is None
    forget(folder)  # where there is nothing
