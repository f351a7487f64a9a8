"""Runs whose numbers go wrong: a few steps are left out, many roll the run back once, and then it is over."""

import json
import math
from pathlib import Path

import pytest

from dragoman.diagnose.facts import gather_facts
from dragoman.diagnose.rules import find
from dragoman.model.weights import load_tensors
from dragoman.plan.schedule import lr_at
from dragoman.run.control import DIVERGED
from dragoman.run.folder import RunFolder
from dragoman.run.reader import read_run
from dragoman.run.records import Event
from small_runs import tiny_recipe, train_here
from spoiled_steps import spoil

SETTINGS = (
    "checkpoint.every_steps=4",
    "checkpoint.keep_last=100",
    "evaluate.every_steps=100",
    "evaluate.decode=false",
    "evaluate.train_pairs=0",
)
LENGTH = "train.max_steps=20"


def nan_if(is_broken: bool) -> float:
    return math.nan if is_broken else 1.0


def events(run: Path, kind: str) -> list[Event]:
    return read_run(run).events_of(kind)


def test_a_few_steps_without_numbers_are_left_out_and_the_run_goes_on(phrasebook_data, tmp_path, monkeypatch):
    spoil(monkeypatch, lambda step, visit: nan_if(5 <= step <= 8))
    assert train_here(phrasebook_data, tmp_path / "run", *SETTINGS, "train.max_steps=12") == 0
    run = read_run(tmp_path / "run")
    assert [event.step for event in run.events_of("left-out")] == [5, 6, 7, 8]
    assert not run.events_of("rolled-back")
    assert [step.step for step in run.steps if not math.isfinite(step.loss)] == [5, 6, 7, 8]
    before, after, end = (load_tensors(run.folder.step_checkpoint(step) / "weights.safetensors") for step in (4, 8, 12))
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
    assert not all(tensor.equal(end[name]) for name, tensor in before.items())


def test_many_roll_the_run_back_once_and_it_ends_with_half_the_rate(phrasebook_data, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patches:
        spoil(patches, lambda step, visit: nan_if(7 <= step <= 11 and visit == 1))
        assert train_here(phrasebook_data, tmp_path / "run", *SETTINGS, LENGTH) == 0
    run = read_run(tmp_path / "run")
    (event,) = run.events_of("rolled-back")
    told = {"from_step": 11, "first_left_out": 7, "rate_factor": 0.5}
    assert (event.step, event.detail) == (4, event.detail | told), "the checkpoint of step 8 came too late"
    said = capsys.readouterr().err
    assert said.count("5 steps in a row gave no number, the first at step 7: back to the checkpoint of step 4,") == 1
    assert [step.step for step in run.steps] == list(range(1, 21))
    assert [step.step for step in run.lost_steps] == list(range(5, 12))
    assert [timing.step for timing in run.timings] == list(range(1, 21))
    recipe = tiny_recipe(LENGTH)
    rates = [lr_at(step, recipe.optim, recipe.model.d_model, 20) for step in range(1, 21)]
    assert [step.learning_rate for step in run.steps] == [*rates[:4], *(rate / 2 for rate in rates[4:])]
    (finding,) = [finding for finding in find(gather_facts(run)) if finding.code == "rolled-back"]
    assert "5 steps in a row gave no number, the first at step 7" in finding.evidence
    assert "from the checkpoint of step 4 with 50 % of the learning rate" in finding.evidence
    # Another run that begins at that checkpoint with half the rate in its recipe does the very same.
    half = f"optim.learning_rate={recipe.optim.learning_rate / 2}"
    source = run.folder.step_checkpoint(4)
    assert train_here(phrasebook_data, tmp_path / "forked", *SETTINGS, LENGTH, half, fork=source) == 0
    assert [step.loss for step in read_run(tmp_path / "forked").steps] == [step.loss for step in run.steps[4:]]


def test_a_resumed_run_keeps_the_lower_rate_and_has_no_second_chance(phrasebook_data, tmp_path, monkeypatch):
    spoil(monkeypatch, lambda step, visit: nan_if((7 <= step <= 11 and visit == 1) or step > 21))
    assert train_here(phrasebook_data, tmp_path / "run", *SETTINGS, LENGTH) == 0
    assert train_here(phrasebook_data, tmp_path / "run", *SETTINGS, "train.max_steps=40") == DIVERGED
    run = read_run(tmp_path / "run")
    recipe = tiny_recipe()
    assert run.steps[-1].learning_rate == 0.5 * lr_at(26, recipe.optim, recipe.model.d_model, 40)
    assert len(run.events_of("rolled-back")) == 1
    assert json.loads((tmp_path / "run/checkpoints/last/state.json").read_text())["rate_factor"] == 0.5


def test_a_run_that_diverges_again_ends_and_says_why(phrasebook_data, tmp_path, monkeypatch, capsys):
    spoil(monkeypatch, lambda step, visit: nan_if(step >= 7))
    assert train_here(phrasebook_data, tmp_path / "run", *SETTINGS, LENGTH) == DIVERGED
    said = capsys.readouterr().err
    assert "going back to a checkpoint had not helped: the run diverged; try a lower optim.learning_rate" in said
    run = read_run(tmp_path / "run")
    assert [event.step for event in run.events_of("rolled-back")] == [4]
    (end,) = run.events_of("stopped")
    assert (end.step, end.detail["reason"]) == (11, "diverged")
    assert not run.events_of("finished")
    assert run.folder.pointed_step("last") == 5
    assert not run.folder.average_checkpoint.exists()
    (finding,) = [finding for finding in find(gather_facts(run)) if finding.code == "diverged"]
    assert finding.evidence == (
        "5 steps in a row up to step 11 gave no number and were left out, the first at step 7. Going back to step 4 "
        "before, with 50 % of the rate, had not helped."
    )
    assert finding.since_step == 7
    assert not [finding for finding in find(gather_facts(run)) if finding.code == "rolled-back"]


def test_without_a_checkpoint_it_ends_at_once(phrasebook_data, tmp_path, monkeypatch, capsys):
    spoil(monkeypatch, lambda step, visit: nan_if(step >= 3))
    settings = (*SETTINGS, LENGTH, "checkpoint.every_steps=100")
    assert train_here(phrasebook_data, tmp_path / "run", *settings) == DIVERGED
    assert "the first at step 3, and there is no checkpoint from before: the run diverged" in capsys.readouterr().err
    assert RunFolder(tmp_path / "run").step_checkpoints() == []
    (finding,) = [finding for finding in find(gather_facts(read_run(tmp_path / "run"))) if finding.code == "diverged"]
    assert "There was no checkpoint before it to go back to." in finding.evidence


def test_fp16_may_look_longer_for_its_scale(phrasebook_data, tmp_path, monkeypatch):
    spoil(monkeypatch, lambda step, visit: nan_if(step <= 15))
    assert train_here(phrasebook_data, tmp_path / "run", *SETTINGS, LENGTH, "train.precision=fp16") == 0
    assert len(events(tmp_path / "run", "left-out")) >= 15


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_spike_is_recorded_and_nothing_else_is_one(phrasebook_data, tmp_path, monkeypatch, factor):
    spoil(monkeypatch, lambda step, visit: factor if step == 130 else 1.0)
    settings = (*SETTINGS, "train.max_steps=150", "checkpoint.every_steps=1000", "evaluate.every_steps=1000")
    assert train_here(phrasebook_data, tmp_path / "run", *settings) == 0
    run = read_run(tmp_path / "run")
    found = run.events_of("spike")
    assert [event.step for event in found] == ([130] if factor > 1 else [])
    for event in found:
        losses = sorted(step.loss for step in run.steps[79:129])
        assert event.detail["loss"] == run.steps[129].loss > 1.5 * event.detail["usual"]
        assert losses[24] <= event.detail["usual"] <= losses[25]
