"""`--when-done`: only after a run that ended well and is copied whole."""

import json

import pytest

from dragoman.launch.when_done import finish
from dragoman.run.folder import RunFolder, create_run_folder

COMMAND = 'echo "$DRAGOMAN_RUN $DRAGOMAN_REASON" > told'


@pytest.fixture
def folder(tmp_path, monkeypatch) -> RunFolder:
    monkeypatch.chdir(tmp_path)
    made = create_run_folder("run")
    lines = [{"kind": "finished", "detail": {"reason": "patience"}}, {"kind": "warning", "detail": {"text": "x"}}]
    made.events_path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"torn')
    return made


def test_the_command_knows_the_run_and_why_it_ended(folder, tmp_path):
    said: list[str] = []
    finish(COMMAND, folder, 0, True, said.append)
    assert (tmp_path / "told").read_text() == f"{tmp_path / 'run'} patience\n"
    assert said == ["running the command of --when-done"]


@pytest.mark.parametrize(("code", "is_mirrored"), [(130, True), (143, True), (1, True), (2, True), (0, False)])
def test_it_does_not_run_after_an_end_that_leaves_something_to_do(folder, tmp_path, code, is_mirrored):
    said: list[str] = []
    finish(COMMAND, folder, code, is_mirrored, said.append)
    assert not (tmp_path / "told").exists()
    assert said == ([] if is_mirrored else ["warning: --when-done is left out: the mirror is not complete"])


def test_its_failure_is_a_warning(folder):
    said: list[str] = []
    finish("exit 7", folder, 0, True, said.append)
    assert said[-1] == "warning: the command of --when-done ended with exit code 7"


def test_without_a_command_nothing_is_said(folder):
    said: list[str] = []
    finish(None, folder, 0, True, said.append)
    assert said == []
