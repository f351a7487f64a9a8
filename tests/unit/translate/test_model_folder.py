"""What MODEL means: a run, or one of its checkpoints."""

import shutil
from pathlib import Path

import pytest

from dragoman.errors import DragomanError
from dragoman.run.folder import create_run_folder
from dragoman.translate.model_folder import find_model


def write_checkpoint(path: Path) -> Path:
    path.mkdir(parents=True)
    for name in ("weights.safetensors", "vocab.model", "recipe.toml"):
        (path / name).write_bytes(b"")
    return path


@pytest.fixture
def run(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    folder.manifest_path.write_text("{}")
    for step in (10, 20, 30):
        write_checkpoint(folder.step_checkpoint(step))
    return folder


def refusal(path) -> str:
    with pytest.raises(DragomanError) as caught:
        find_model(path)
    assert caught.value.hint
    return caught.value.message


def test_of_a_run_the_average_is_taken_then_the_best_by_bleu_then_by_loss_then_the_last(run):
    run.set_pointer("last", 30)
    assert find_model(run.path).path == run.step_checkpoint(30)
    run.set_pointer("best-loss", 20)
    assert find_model(run.path).path == run.step_checkpoint(20)
    run.set_pointer("best-bleu", 10)
    assert find_model(run.path).path == run.step_checkpoint(10)
    write_checkpoint(run.average_checkpoint)
    assert find_model(run.path).path == run.average_checkpoint


def test_a_pointer_to_a_checkpoint_that_is_gone_is_passed_over(run):
    run.set_pointer("best-bleu", 10)
    run.set_pointer("last", 30)
    shutil.rmtree(run.step_checkpoint(10))
    assert find_model(run.path).path == run.step_checkpoint(30)


def test_a_checkpoint_or_a_pointer_can_be_named_itself(run):
    run.set_pointer("last", 30)
    assert find_model(run.step_checkpoint(10)).path == run.step_checkpoint(10)
    assert find_model(str(run.checkpoints_path / "last")).path == run.step_checkpoint(30)


def test_a_model_knows_its_files(trained_run):
    model = find_model(trained_run)
    assert model.weights_path.is_file()
    assert model.vocab_path.is_file()
    assert model.recipe.name == "phrasebook"


def test_nothing_there(tmp_path):
    assert "there is no model" in refusal(tmp_path / "nowhere")


def test_a_folder_or_file_that_is_no_model(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert "is not a model" in refusal(tmp_path)
    assert "is not a model" in refusal(tmp_path / "notes.txt")


def test_a_run_that_has_saved_nothing_yet(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    folder.manifest_path.write_text("{}")
    assert "has no checkpoint yet" in refusal(folder.path)


@pytest.mark.parametrize("name", ["vocab.model", "recipe.toml"])
def test_a_checkpoint_that_lacks_a_file_names_it(run, name):
    (run.step_checkpoint(10) / name).unlink()
    assert name in refusal(run.step_checkpoint(10))
