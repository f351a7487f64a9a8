"""`--fork`: a new run that begins where another one was."""

import shutil

import pytest

from command_line import changes, run_dragoman
from dragoman.errors import DragomanError
from dragoman.model.weights import load_tensors
from dragoman.run.checkpoint_files import WEIGHTS, find_damage
from dragoman.run.folder import RunFolder
from dragoman.run.reader import read_run
from dragoman.train.fork import find_fork
from dragoman.train.job import make_job
from sample_run import files_of
from small_runs import dragoman_here, tiny_recipe, train_here

SETTINGS = ("checkpoint.every_steps=2", "evaluate.every_steps=100", "evaluate.decode=false")


@pytest.fixture(scope="module")
def source(phrasebook_data, tmp_path_factory):
    run = tmp_path_factory.mktemp("source") / "run"
    assert train_here(phrasebook_data, run, *SETTINGS, "train.max_steps=6") == 0
    return run


def fork(data, source, run, *settings) -> None:
    assert train_here(data, run, *SETTINGS, *settings, fork=source) == 0


def test_a_fork_of_a_checkpoint_becomes_the_run_it_came_from(phrasebook_data, source, tmp_path):
    before = files_of(source)
    fork(phrasebook_data, source / "checkpoints/step-00000004", tmp_path / "new", "train.max_steps=6")
    ours, theirs = (load_tensors(run / "checkpoints/last" / WEIGHTS) for run in (tmp_path / "new", source))
    assert all(tensor.equal(theirs[name]) for name, tensor in ours.items())
    assert [step.step for step in read_run(tmp_path / "new").steps] == [5, 6]
    assert files_of(source) == before


def test_the_same_command_goes_on_though_the_source_is_gone(phrasebook_data, source, tmp_path):
    copy, new = tmp_path / "copy", tmp_path / "new"
    shutil.copytree(source, copy, symlinks=True)
    fork(phrasebook_data, copy, new, "train.max_steps=7")
    shutil.rmtree(copy)
    fork(phrasebook_data, copy, new, "train.max_steps=8")
    assert [step.step for step in read_run(new).steps] == [7, 8]


def test_a_start_that_was_killed_while_it_copied_begins_again(phrasebook_data, source, tmp_path):
    recipe = tiny_recipe(*SETTINGS)
    for _ in range(2):
        make_job(recipe, phrasebook_data, tmp_path / "new", 1, "", fork=str(source))
        (tmp_path / "new/checkpoints/step-00000006" / WEIGHTS).write_bytes(b"half")
    make_job(recipe, phrasebook_data, tmp_path / "new", 1, "", fork=str(source))
    assert find_damage(tmp_path / "new/checkpoints/step-00000006") is None
    assert RunFolder(tmp_path / "new").pointed_step("last") == 6


def test_what_cannot_be_forked_is_said(source, tmp_path):
    nowhere = RunFolder(tmp_path / "new")
    with pytest.raises(DragomanError, match="has no checkpoint to fork from"):
        find_fork(str(tmp_path), nowhere)
    copy = tmp_path / "copy"
    shutil.copytree(source, copy, symlinks=True)
    (copy / "checkpoints/last/recipe.toml").write_text("")
    with pytest.raises(DragomanError, match=r"is damaged: recipe\.toml"):
        find_fork(str(copy), nowhere)


def test_init_and_fork_together_are_refused(phrasebook_data, source, tmp_path, monkeypatch, capsys):
    words = ("--data", phrasebook_data, "--run", tmp_path / "new", "--fork", source, "--init", source)
    assert dragoman_here(monkeypatch, "train", "phrasebook", *words) == 2
    assert "--init and --fork are two ways to begin" in capsys.readouterr().err


def test_the_command_forks(phrasebook_data, source, tmp_path):
    words = ("train", "phrasebook", "--data", phrasebook_data, "--run", tmp_path / "new", "--fork", source)
    run_dragoman(*words, *changes(*SETTINGS, "train.max_steps=7"))
    assert [step.step for step in read_run(tmp_path / "new").steps] == [7]


def test_an_average_has_no_optimizer_to_go_on_with(phrasebook_data, tmp_path):
    settings = ("checkpoint.average_last=2", "train.max_steps=4")
    assert train_here(phrasebook_data, tmp_path / "run", *SETTINGS, *settings) == 0
    with pytest.raises(DragomanError, match="has no optimizer"):
        find_fork(str(tmp_path / "run/checkpoints/average"), RunFolder(tmp_path / "new"))
