"""What crosses to a worker, and whether it may go on in an existing run folder."""

from pathlib import Path

import pytest

from dragoman.config import Recipe
from dragoman.errors import DragomanError
from dragoman.run.records import DataSummary, Manifest, SideSize
from dragoman.train.job import Job, check_same_run, recipe_hash
from small_runs import tiny_recipe


def manifest(recipe: Recipe) -> Manifest:
    data = DataSummary("/data/first", "f00d", "en-de", 3, SideSize("en"), SideSize("de"))
    return Manifest("trial", 0.0, recipe.model_dump(), recipe_hash(recipe), {}, 1, "cpu", "fp32", 10, data)


@pytest.mark.parametrize("init", [None, Path("/m/weights.safetensors")])
def test_a_job_survives_the_command_line(init):
    job = Job(tiny_recipe("about='Straße \"7\"'"), Path("data"), Path("run"), 3, "dragoman train 'x y'", init)
    assert Job.from_json(job.to_json()) == job


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("optim.warmup_steps=11", "optim.warmup_steps is 10 there and 11 here"),
        ("model.d_model=64", "model.d_model"),
        ("batch.target_tokens=401", "batch.target_tokens"),
        ("train.seed=2", "train.seed"),
        ("train.precision=fp64", "train.precision"),
        ("train.label_smoothing=0.2", "train.label_smoothing"),
    ],
)
def test_a_changed_setting_is_refused_by_name(change, key):
    with pytest.raises(DragomanError, match="belongs to another recipe") as caught:
        check_same_run(manifest(tiny_recipe()), tiny_recipe(change), "f00d", Path("runs/a"))
    assert key in caught.value.message
    assert "runs/a" in caught.value.message
    assert recipe_hash(tiny_recipe()) != recipe_hash(tiny_recipe(change))


@pytest.mark.parametrize(
    "change",
    [
        "train.max_steps=7",
        "train.max_minutes=3",
        "train.patience=2",
        "train.log_every=5",
        "evaluate.every_steps=3",
        "checkpoint.keep_last=9",
        "decode.beam=1",
        "about=other",
        "vocab.size=700",
        "batch.num_microbatches=5",
        "batch.num_microbatches=auto",
    ],
)
def test_what_does_not_alter_an_update_may_change(change):
    assert tiny_recipe(change) != tiny_recipe()
    check_same_run(manifest(tiny_recipe()), tiny_recipe(change), "f00d", Path("runs/a"))
    assert recipe_hash(tiny_recipe()) == recipe_hash(tiny_recipe(change))


def test_other_data_is_refused_and_the_first_named():
    with pytest.raises(DragomanError, match=r"started on other data: /data/first"):
        check_same_run(manifest(tiny_recipe()), tiny_recipe(), "beef", Path("runs/a"))


def test_a_setting_that_an_older_version_did_not_have_is_named():
    old = manifest(tiny_recipe())
    del old.recipe["optim"]["max_norm"]
    with pytest.raises(DragomanError, match=r"optim\.max_norm is None there"):
        check_same_run(old, tiny_recipe(), "f00d", Path("runs/a"))
