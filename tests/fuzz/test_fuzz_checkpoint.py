"""Checkpoints from strangers: what they claim is checked before it is believed, opened or given memory."""

import json
import shutil
import struct

import pytest
import torch
from fuzz_samples import make_checkpoint

from dragoman.errors import DragomanError
from dragoman.model.weights import average_files, load_tensors, save_tensors
from dragoman.run.checkpoint_files import RECIPE, STATE, WEIGHTS, find_damage, state_digest
from dragoman.train.checkpoint_restore import read_progress
from dragoman.translate.model_folder import find_model
from dragoman.translate.translator import Translator


@pytest.fixture
def checkpoint(tmp_path):
    make_checkpoint(tmp_path / "model")
    return tmp_path / "model"


def seal(checkpoint, **changes):
    state = {**json.loads((checkpoint / STATE).read_text()), **changes}
    state.pop("sha256")
    (checkpoint / STATE).write_text(json.dumps({**state, "sha256": state_digest(state)}))


def test_damaged_states_are_named_or_whole(tried):
    tried("state", 300)


def test_damaged_weights_are_one_line_or_tensors(tried):
    tried("weights", 300)


def test_damaged_models_are_one_line_or_translate(tried):
    tried("model", 150)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "..", "", "a/../../secret"])
def test_a_state_that_names_files_elsewhere_is_damaged(checkpoint, name):
    (checkpoint.parent / "secret").write_bytes(b"")
    seal(checkpoint, files={name: {"bytes": 0, "sha256": ""}})
    assert "no file of a checkpoint" in str(find_damage(checkpoint))


def test_a_link_out_of_a_checkpoint_is_damage(checkpoint):
    (checkpoint / WEIGHTS).rename(checkpoint.parent / "elsewhere")
    (checkpoint / WEIGHTS).symlink_to(checkpoint.parent / "elsewhere")
    assert "no file of a checkpoint" in str(find_damage(checkpoint))


@pytest.mark.parametrize("change", [{"step": "x"}, {"best_loss": [1]}, {"trained_seconds": None}])
def test_a_state_of_other_kinds_does_not_say_how_far_a_run_came(checkpoint, change):
    seal(checkpoint, **change)
    assert find_damage(checkpoint) is None
    with pytest.raises(DragomanError, match="how far the run came"):
        read_progress(checkpoint)


@pytest.mark.parametrize("claimed", [2**20, 2**40, 2**63, 2**64 - 1])
def test_a_header_that_claims_terabytes_is_refused(tmp_path, claimed):
    path = tmp_path / "giant.safetensors"
    path.write_bytes(struct.pack("<Q", claimed) + b"{}")
    with pytest.raises(DragomanError, match="cannot be read"):
        load_tensors(path)


def test_a_tensor_that_claims_terabytes_is_refused(tmp_path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [2**20, 2**20], "data_offsets": [0, 2**42]}}).encode()
    path = tmp_path / "giant.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(DragomanError, match="cannot be read"):
        load_tensors(path)


@pytest.mark.parametrize(
    "change",
    [
        ("d_model = 32", "d_model = 2000000000"),
        ("_layers = 1", "_layers = 900000000"),
    ],
)
def test_a_recipe_that_claims_another_model_than_the_weights_is_refused_before_one_is_made(checkpoint, change):
    text = (checkpoint / RECIPE).read_text()
    assert change[0] in text
    (checkpoint / RECIPE).write_text(text.replace(*change))
    with pytest.raises(DragomanError, match="does not fit the model: it holds"):
        Translator(checkpoint, device="cpu")


def test_averages_are_of_like_tensors_only(tmp_path):
    for name, size in (("a", 3), ("b", 4)):
        save_tensors({"w": torch.ones(size)}, tmp_path / name)
    assert average_files([tmp_path / "a", tmp_path / "a"])["w"].tolist() == [1.0] * 3
    with pytest.raises(DragomanError, match="other tensors"):
        average_files([tmp_path / "a", tmp_path / "b"])


def test_a_run_translates_with_no_checkpoint_that_lies_elsewhere(checkpoint, tmp_path):
    checkpoints = tmp_path / "run" / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "best-bleu").symlink_to(checkpoint)
    with pytest.raises(DragomanError, match="no checkpoint yet"):
        find_model(tmp_path / "run")
    shutil.copytree(checkpoint, checkpoints / "step-00000010")
    (checkpoints / "last").symlink_to("step-00000010")
    assert find_model(tmp_path / "run").path == (checkpoints / "step-00000010").resolve()
