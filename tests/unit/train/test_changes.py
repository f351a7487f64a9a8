"""What a run goes on with that was otherwise before."""

import pytest

from dragoman.run.reader import read_run
from dragoman.train.changes import Change, changed_settings, rate_note
from small_runs import tiny_recipe, train_here

LINEAR = ("optim.schedule=linear", "optim.learning_rate=0.01", "optim.warmup_steps=10", "optim.final_share=0")
LONGER = [Change("train.max_steps", 110, 210)]


def test_settings_that_differ_are_found_and_nothing_else():
    before = tiny_recipe().model_dump() | {"name": "other", "about": "other"}
    after = tiny_recipe("train.max_steps=77", "checkpoint.keep_last=9", "sync.method=int8")
    assert {(change.key, change.after) for change in changed_settings(before, after)} == {
        ("train.max_steps", 77),
        ("checkpoint.keep_last", 9),
        ("sync.method", "int8"),
    }
    assert changed_settings(tiny_recipe().model_dump(), tiny_recipe()) == []


def test_a_setting_that_an_earlier_version_did_not_know_is_no_change():
    before = tiny_recipe().model_dump()
    del before["checkpoint"]["max_gigabytes"]
    del before["sync"]
    assert changed_settings(before, tiny_recipe("checkpoint.max_gigabytes=5", "sync.method=int8")) == []


def test_another_length_says_what_the_rate_will_do():
    note = rate_note(LONGER, tiny_recipe(*LINEAR, "train.max_steps=210"), 59)
    assert note == (
        "the learning rate follows the length: 0.0075 at step 60 instead of 0.005, and 0% of its peak at step 210"
    )


@pytest.mark.parametrize(
    ("changes", "settings", "step"),
    [
        (LONGER, ("optim.schedule=transformer",), 59),
        (LONGER, LINEAR, 5),  # rising still
        ([Change("train.patience", 0, 3)], LINEAR, 59),
    ],
)
def test_where_it_does_nothing_there_is_no_note(changes, settings, step):
    assert rate_note(changes, tiny_recipe(*settings, "train.max_steps=210"), step) is None


def test_a_run_that_goes_on_records_what_is_new(phrasebook_data, tmp_path):
    settings = (*LINEAR, "evaluate.decode=false", "optim.warmup_steps=1")
    for length in (2, 4):
        assert train_here(phrasebook_data, tmp_path / "run", *settings, f"train.max_steps={length}") == 0
    run = read_run(tmp_path / "run")
    (change,) = run.events_of("changed")
    assert (change.step, change.detail) == (2, {"key": "train.max_steps", "before": 2, "after": 4})
    assert any("the learning rate follows the length" in event.detail["text"] for event in run.events_of("warning"))
