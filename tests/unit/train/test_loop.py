"""The loop as a whole, on short runs: what it records, when it stops, and what it leaves out."""

import json
import os
import signal
from types import SimpleNamespace

import pytest
import torch

from dragoman.model.search import search
from dragoman.model.weights import load_tensors
from dragoman.plan.schedule import lr_at
from dragoman.run.reader import read_run
from dragoman.train import microbatches, validate
from dragoman.train.build import agree_on_precision, resolve_precision
from dragoman.train.loop import dropout_seed
from dragoman.train.meter import PHASES
from dragoman.train.optim import Optimizer
from small_runs import records, tiny_recipe, train_here

QUICK = ("evaluate.decode=false", "evaluate.train_pairs=0")


def test_dropout_is_seeded_by_seed_step_and_microbatch():
    keys = [(seed, step, piece) for seed in (1, 2) for step in (1, 2, 11) for piece in (0, 1, 12)]
    assert len({dropout_seed(*key) for key in keys}) == len(keys)
    assert dropout_seed(1, 2, 3) == 1540937338477698060
    assert all(0 <= dropout_seed(*key) < 2**63 for key in keys)


def test_auto_is_the_fastest_that_the_device_has(monkeypatch):
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: not including_emulation)
    assert [resolve_precision("auto", device) for device in (cpu, cuda)] == ["fp32", "bf16"]
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    assert resolve_precision("auto", cuda) == "fp16"
    assert resolve_precision("fp64", cuda) == "fp64"


def test_ranks_of_unlike_gpus_agree_where_gradients_are_scaled():
    recipe = tiny_recipe("train.precision=bf16")
    for others, agreed in ((["bf16", "fp32"], "bf16"), (["bf16", "fp16"], "fp16")):
        world = SimpleNamespace(device=torch.device("cpu"), gather=lambda own, others=others: [own, *others])
        assert agree_on_precision(recipe, world) == agreed


def test_a_run_computes_in_what_its_ranks_agreed_on(phrasebook_data, tmp_path, monkeypatch):
    monkeypatch.setattr(microbatches, "agree_on_precision", lambda recipe, world: "fp16")
    assert train_here(phrasebook_data, tmp_path / "run", *QUICK, "train.max_steps=1", "train.precision=auto") == 0
    assert read_run(tmp_path / "run").manifest.precision == "fp16"


def test_every_step_is_recorded_with_its_rate_and_tokens(trained_run):
    recipe = tiny_recipe()
    run = read_run(trained_run)
    assert [step.step for step in run.steps] == list(range(1, 31))
    for step in run.steps:
        assert step.learning_rate == lr_at(step.step, recipe.optim, recipe.model.d_model, 30)
        assert 300 < step.target_tokens <= 460
        assert step.nll < step.loss  # smoothing costs
    assert run.steps[-1].loss < run.steps[0].loss
    assert run.manifest.num_parameters == sum(
        tensor.numel() for tensor in load_tensors(trained_run / "checkpoints/last/weights.safetensors").values()
    )
    assert run.profile is not None
    assert run.manifest.attempts[0].time < run.profile.time, "measuring is a part of the run"


def test_a_replica_learns_at_the_rate_of_its_exchange(phrasebook_data, tmp_path):
    """Next to nothing is learned at next to no rate, whatever the schedule says."""
    settings = ("sync.method='diloco'", "train.max_steps=20", "evaluate.every_steps=20", *QUICK)
    losses = []
    for factor in (1.0, 1e-9):
        run = tmp_path / f"run-{factor}"
        train_here(phrasebook_data, run, *settings, f"sync.inner_rate={factor}")
        losses.append([step.loss for step in read_run(run).steps])
    assert losses[1][0] == losses[0][0]
    assert losses[1][-1] > losses[0][-1] + 0.1


def test_the_parts_of_every_step_sum_to_its_wall_time(trained_run):
    run = read_run(trained_run)
    assert len(run.timings) == 30
    for timing in run.timings:
        parts = [getattr(timing, f"{name}_seconds") for name in (*PHASES, "other")]
        assert min(parts[:5]) > 0
        assert sum(parts) == pytest.approx(timing.wall_seconds, abs=1e-5)
    assert {t.step for t in run.timings if t.validation_seconds > 0} == {10, 20, 30}
    begun = {5, 10, 15, 20, 25, 30}
    saving = {t.step for t in run.timings if t.checkpoint_seconds > 0}
    assert begun <= saving
    assert len(saving) < 2 * len(begun)  # the last is waited for when the steps are over; the others end in some step
    for step, timing in zip(run.steps, run.timings, strict=True):
        without = timing.wall_seconds - timing.validation_seconds - timing.checkpoint_seconds
        assert step.step_seconds == pytest.approx(without, abs=1e-5)


def test_a_checkpoint_counts_as_soon_as_it_is_written_and_not_with_the_next_save(trained_run):
    run = read_run(trained_run)
    ends = {step.step: step.time for step in run.steps}
    written = {event.step: event.time for event in run.events_of("checkpoint")}
    assert list(written) == [5, 10, 15, 20, 25, 30]
    assert any(written[step] < ends[step + 4] for step in (5, 10, 15, 20, 25))


def test_the_best_and_the_newest_checkpoints_stay(trained_run):
    run = read_run(trained_run)
    losses = {record.step: record.loss for record in run.evals}
    kept = {checkpoint.step: checkpoint.pointers for checkpoint in run.checkpoints}
    assert {20, 25, 30} <= set(kept) <= {10, 20, 25, 30}
    assert "best-loss" in kept[min(losses, key=losses.get)]
    assert "last" in kept[30]


def test_an_update_whose_gradient_is_no_number_is_left_out(phrasebook_data, tmp_path, monkeypatch):
    update, rates = Optimizer.update, []

    def spoiled(self, rate):
        rates.extend([rate] if rate else [])  # with a rate of zero it is only timed
        if rate and len(rates) == 2:
            self._flat.gradient.fill_(torch.nan)
        return update(self, rate)

    monkeypatch.setattr(Optimizer, "update", spoiled)
    settings = ("train.max_steps=3", "checkpoint.every_steps=1", "evaluate.every_steps=3", *QUICK)
    assert train_here(phrasebook_data, tmp_path / "run", *settings) == 0
    weights = [load_tensors(tmp_path / f"run/checkpoints/step-0000000{step}/weights.safetensors") for step in (1, 2, 3)]
    assert all(tensor.equal(weights[1][name]) for name, tensor in weights[0].items())
    assert not all(tensor.equal(weights[2][name]) for name, tensor in weights[0].items())
    (event,) = [event for event in records(tmp_path / "run", "events") if event["kind"] == "left-out"]
    assert event["step"] == 2
    assert event["detail"]["text"] == "step 2 gave no number: its update was left out"


def test_the_time_limit_ends_a_run_and_holds_when_it_is_started_again(phrasebook_data, tmp_path):
    settings = ("train.max_minutes=0.01", "train.max_steps=100000", *QUICK)
    ends = []
    for _ in range(2):
        assert train_here(phrasebook_data, tmp_path / "run", *settings) == 0
        ends.append(read_run(tmp_path / "run").steps[-1].step)
    assert 1 <= ends[0] == ends[1] < 100_000
    run = read_run(tmp_path / "run")
    assert [event.detail["reason"] for event in run.events_of("finished")] == ["max_minutes", "max_minutes"]
    assert [record.step for record in run.evals] == ends[:1]
    assert json.loads((tmp_path / "run/checkpoints/last/state.json").read_text())["trained_seconds"] >= 0.6


@pytest.mark.parametrize(("steps", "code", "num_evals"), [(1000, 143, 0), (2, 0, 1)])
def test_a_warning_in_an_evaluation_is_heard_at_once_but_not_in_the_last_one(
    phrasebook_data, tmp_path, monkeypatch, steps, code, num_evals
):
    def warned(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return search(*arguments)

    monkeypatch.setattr(validate, "search", warned)
    monkeypatch.setattr(validate, "EVALUATION_TOKENS", 200)
    settings = (f"train.max_steps={steps}", "evaluate.every_steps=2", "checkpoint.every_steps=1000")
    assert train_here(phrasebook_data, tmp_path / "run", *settings) == code
    run = read_run(tmp_path / "run")
    assert len(run.evals) == num_evals
    (end,) = run.events_of("stopped" if code else "finished")
    # What was not evaluated is saved all the same, and so is the step in which the ranks agreed to leave.
    assert [event.step for event in run.events_of("checkpoint")] == ([2, 3] if code else [2])
    assert end.detail["reason"] == ("preempted" if code else "max_steps")


def test_patience_ends_a_run(phrasebook_data, tmp_path):
    """A rate so high that the dev loss gets worse at once."""
    settings = ("train.patience=2", "optim.learning_rate=3.0", "optim.warmup_steps=1", "evaluate.every_steps=2")
    assert train_here(phrasebook_data, tmp_path / "run", *settings, "train.max_steps=60", *QUICK) == 0
    run = read_run(tmp_path / "run")
    (end,) = run.events_of("finished")
    assert end.detail["reason"] == "patience"
    losses = [record.loss for record in run.evals]
    assert min(losses) == losses[-3]
    assert end.step == run.steps[-1].step < 60


def test_the_average_has_as_many_checkpoints_as_asked_for(phrasebook_data, tmp_path):
    settings = ("train.max_steps=8", "checkpoint.every_steps=2", "checkpoint.keep_last=1", "checkpoint.average_last=3")
    assert train_here(phrasebook_data, tmp_path / "run", *settings, "evaluate.every_steps=8", *QUICK) == 0
    state = json.loads((tmp_path / "run/checkpoints/average/state.json").read_text())
    assert state["averaged_steps"] == [4, 6, 8]


def test_a_run_goes_on_further_when_it_is_given_more_steps(phrasebook_data, tmp_path):
    for max_steps in (3, 5):
        assert train_here(phrasebook_data, tmp_path / "run", f"train.max_steps={max_steps}", *QUICK) == 0
    run = read_run(tmp_path / "run")
    assert [step.step for step in run.steps] == [1, 2, 3, 4, 5]
    assert [attempt.attempt for attempt in run.manifest.attempts] == [1, 2]
    assert [event.step for event in run.events_of("resumed")] == [3]


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(phrasebook_data, tmp_path, capsys):
    settings = ("train.max_steps=6", "checkpoint.every_steps=2", "evaluate.every_steps=6", *QUICK)
    assert train_here(phrasebook_data, tmp_path / "run", *settings) == 0
    before = [step.loss for step in read_run(tmp_path / "run").steps]
    (tmp_path / "run/checkpoints/step-00000006/weights.safetensors").write_bytes(b"")
    assert train_here(phrasebook_data, tmp_path / "run", *settings) == 0
    assert "step-00000006 is damaged (weights.safetensors has other bytes" in capsys.readouterr().err
    run = read_run(tmp_path / "run")
    assert [step.loss for step in run.steps] == before
    assert [step.step for step in run.lost_steps] == [5, 6]


def test_a_checkpoint_comes_by_the_clock_where_steps_are_slow(phrasebook_data, tmp_path):
    settings = ("train.max_steps=4", "checkpoint.every_steps=100", "evaluate.every_steps=100")
    saved = {}
    for minutes in ("1e-6", "10.0"):
        run = tmp_path / minutes
        assert train_here(phrasebook_data, run, *settings, f"checkpoint.every_minutes={minutes}") == 0
        saved[minutes] = [event["step"] for event in records(run, "events") if event["kind"] == "checkpoint"]
    assert saved == {"1e-6": [1, 2, 3, 4], "10.0": [4]}
