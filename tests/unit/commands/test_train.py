"""`dragoman train`: every mistake is one line before a worker starts; and what the command does to a run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import changes, run_dragoman
from dragoman.commands.train_local import advise_rate
from dragoman.data.shards import write_eval_set
from dragoman.errors import DragomanError
from dragoman.model.weights import load_tensors
from dragoman.recipe import load_recipe
from dragoman.run.checkpoint_files import find_damage
from dragoman.run.reader import read_run
from dragoman.train.job import Job
from small_runs import dragoman_here, records, tiny_job, train_here

QUICK = ("evaluate.decode=false", "evaluate.train_pairs=0")


def refusal(*arguments, **options) -> DragomanError:
    with pytest.raises(DragomanError) as caught:
        tiny_job(*arguments, **options)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((), "--data is missing"), (("--data", "d"), "--run is missing"), (("--run", "r"), "--data is missing")],
)
def test_what_is_missing_is_named(monkeypatch, capsys, arguments, words):
    assert dragoman_here(monkeypatch, "train", "tiny", *arguments) == 2
    assert capsys.readouterr().err.startswith(f"error: {words}")


@pytest.mark.parametrize("variable", ["DRAGOMAN_JOIN_SECONDS", "DRAGOMAN_MEASURE_SECONDS"])
def test_a_limit_that_is_no_number_is_said_once_and_nothing_is_started(monkeypatch, capfd, tmp_path, variable):
    monkeypatch.setenv(variable, "soon")
    arguments = ("train", "phrasebook", "--data", tmp_path, "--run", tmp_path / "run", "--workers", "2")
    assert dragoman_here(monkeypatch, *arguments) == 2
    assert capfd.readouterr().err.count(f"error: {variable} is 'soon'") == 1
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_no_data_folder(tmp_path):
    assert "is not a prepared data folder" in refusal(tmp_path / "nowhere", tmp_path / "run").message
    assert not (tmp_path / "run").exists()


def copied(data: Path, folder: Path) -> Path:
    return Path(shutil.copytree(data, folder / "data"))


@pytest.mark.parametrize("change", [{"schema": 2}, {"novelty": 1}])
def test_a_data_folder_of_another_version(phrasebook_data, tmp_path, change):
    data = copied(phrasebook_data, tmp_path)
    values = json.loads((data / "manifest.json").read_text())
    (data / "manifest.json").write_text(json.dumps({**values, **change}))
    assert "made by another version of dragoman" in refusal(data, tmp_path / "run").message


def test_a_data_folder_that_lost_a_file(phrasebook_data, tmp_path):
    data = copied(phrasebook_data, tmp_path)
    shard = next((data / "train").glob("*.target.bin"))
    shard.write_bytes(shard.read_bytes()[:-2])
    assert shard.name in refusal(data, tmp_path / "run").message


def test_more_workers_than_microbatches(phrasebook_data, tmp_path):
    error = refusal(phrasebook_data, tmp_path / "run", workers=5)
    assert "5 workers but only 4 microbatches" in error.message
    assert "--set batch.num_microbatches=5" in error.hint
    tiny_job(phrasebook_data, tmp_path / "run", workers=4)


def test_workers_cut_the_step_themselves_where_the_recipe_leaves_it_open(phrasebook_data, tmp_path):
    auto = ("batch.num_microbatches=auto", "batch.max_pieces=30")
    tiny_job(phrasebook_data, tmp_path / "run", *auto, workers=12)
    error = refusal(phrasebook_data, tmp_path / "run", *auto, workers=13)
    assert "a step of 400 target tokens cut for 13 ranks makes microbatches of 30" in error.message


def test_a_run_folder_of_another_recipe_names_the_key_and_stays_as_it_is(phrasebook_data, trained_run):
    before = (trained_run / "manifest.json").read_bytes()
    error = refusal(phrasebook_data, trained_run, "optim.warmup_steps=77")
    assert "optim.warmup_steps is 10 there and 77 here" in error.message
    assert (trained_run / "manifest.json").read_bytes() == before


def test_a_run_folder_of_other_data(phrasebook_data, trained_run, tmp_path):
    data = copied(phrasebook_data, tmp_path)
    values = json.loads((data / "manifest.json").read_text())
    (data / "manifest.json").write_text(json.dumps({**values, "fingerprint": "0" * 64}))
    assert "started on other data" in refusal(data, trained_run).message


def test_a_folder_with_other_files_is_not_taken_for_a_run(phrasebook_data, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/thesis.tex").write_text("")
    assert "holds other files" in refusal(phrasebook_data, tmp_path / "run").message


def test_an_attempt_is_counted_and_the_command_kept(phrasebook_data, trained_run, monkeypatch):
    monkeypatch.setattr("sys.argv", ["dragoman", "train", "--run", "my run"])
    job = Job.from_json(tiny_job(phrasebook_data, trained_run))
    assert job.attempt == 2
    assert job.command == "dragoman train --run 'my run'"


def test_running_a_finished_run_again_trains_nothing_and_ends_well(phrasebook_data, trained_run, tmp_path, capsys):
    run = Path(shutil.copytree(trained_run, tmp_path / "run", symlinks=True))
    weights = (run / "checkpoints/last/weights.safetensors").stat()
    settings = ("train.max_steps=30", "evaluate.every_steps=10", "checkpoint.every_steps=5", "checkpoint.keep_last=3")
    assert train_here(phrasebook_data, run, *settings) == 0
    assert "finished at step 30 (max_steps)" in capsys.readouterr().err
    assert len(records(run, "steps")) == 30
    assert len(records(run, "evals")) == 3
    assert (run / "checkpoints/last/weights.safetensors").stat().st_mtime_ns == weights.st_mtime_ns


def test_init_starts_from_those_weights(phrasebook_data, trained_run, tmp_path):
    rate = ("optim.learning_rate=1e-12", "train.max_steps=2", "evaluate.every_steps=2", *QUICK)
    fresh, tuned = tmp_path / "fresh", tmp_path / "tuned"
    assert train_here(phrasebook_data, fresh, *rate) == 0
    assert train_here(phrasebook_data, tuned, *rate, init=trained_run / "checkpoints/last") == 0
    assert records(tuned, "steps")[0]["loss"] < records(fresh, "steps")[0]["loss"] - 0.3
    theirs = load_tensors(trained_run / "checkpoints/last/weights.safetensors")
    ours = load_tensors(tuned / "checkpoints/last/weights.safetensors")
    for name, tensor in theirs.items():
        assert tensor.allclose(ours[name], atol=1e-6), name


def test_init_takes_the_shape_of_that_model_and_the_dropout_of_this_recipe(phrasebook_data, trained_run, tmp_path):
    settings = ("model.d_model=64", "model.dropout=0.3")
    job = Job.from_json(tiny_job(phrasebook_data, tmp_path / "run", *settings, init=trained_run))
    assert (job.recipe.model.d_model, job.recipe.model.dropout) == (32, 0.3)
    assert job.init.parent.name.startswith("step-")


def test_init_whose_positions_are_too_few_is_refused(phrasebook_data, tmp_path):
    model = tmp_path / "short"
    settings = ("model.max_positions=61", "train.max_steps=1", *QUICK)
    assert train_here(phrasebook_data, model, *settings) == 0
    error = refusal(phrasebook_data, tmp_path / "run", "batch.max_pieces=70", init=model)
    assert "exceeds model.max_positions 61" in error.message


def test_init_with_another_vocabulary_is_refused(phrasebook_data, trained_run, tmp_path):
    model = Path(shutil.copytree(trained_run / "checkpoints/last", tmp_path / "model"))
    (model / "vocab.model").write_bytes(b"other pieces")
    error = refusal(phrasebook_data, tmp_path / "run", init=model)
    assert "another vocabulary" in error.message
    assert f"--vocab {model}" in error.hint


def test_init_without_a_model(phrasebook_data, tmp_path):
    assert "there is no model" in refusal(phrasebook_data, tmp_path / "run", init=tmp_path / "nowhere").message


def test_several_dev_sets_are_evaluated_at_once(phrasebook_data, tmp_path):
    data = copied(phrasebook_data, tmp_path)
    info = write_eval_set(data / "dev", "talks", ["The dog sleeps."] * 3, ["Der Hund schläft."] * 3)
    values = json.loads((data / "manifest.json").read_text())
    values["dev"].append(info.model_dump())
    (data / "manifest.json").write_text(json.dumps(values))
    assert train_here(data, tmp_path / "run", "train.max_steps=2", "evaluate.every_steps=1", *QUICK) == 0
    run = read_run(tmp_path / "run")
    assert [(record.step, record.dev_set) for record in run.evals] == [
        (1, "dev"),
        (1, "talks"),
        (2, "dev"),
        (2, "talks"),
    ]
    assert len(run.read_eval_sentences(2, "talks")) == 3


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1300k", "tmpfs", str(disk)], capture_output=True
        ).returncode
    ):
        pytest.skip("needs root to mount a small disk")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_one_line_and_the_earlier_checkpoint_stays_whole(phrasebook_data, small_disk, workers):
    """A checkpoint is 0.5 MB: the first two fit, the third does not. All ranks end, and only one speaks."""
    settings = changes("checkpoint.every_steps=2", "train.max_steps=50", "evaluate.every_steps=50", *QUICK)
    command = ("train", "phrasebook", "--data", phrasebook_data, "--run", small_disk / "run", "--workers", workers)
    done = run_dragoman(*command, *settings, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    assert "cannot write the checkpoint" in errors[0]
    assert "No space left on device" in errors[0]
    assert find_damage((small_disk / "run/checkpoints/last").resolve()) is None
    assert not list((small_disk / "run/checkpoints").glob(".step*"))


@pytest.mark.parametrize(
    ("options", "environment", "words"),
    [
        (("--detach",), {}, "--detach means nothing without --hosts"),
        (("--min-hosts", "1"), {}, "--min-hosts means nothing without --hosts"),
        (("--hosts", "a,b", "--min-hosts", "3"), {}, "--min-hosts 3, but --hosts names 2"),
        (("--hosts", "a,b", "--node-rank", "0", "--min-hosts", "1"), {}, "--min-hosts means nothing with --node-rank"),
        (("--node-rank", "0"), {}, "--node-rank means nothing without --hosts"),
        (("--subnet", "10.0.0.0/8"), {}, "--subnet means nothing without --hosts"),
        (("--hosts", "a,b", "--node-rank", "0", "--detach"), {}, "--detach means nothing with --node-rank"),
        (("--hosts", "a,b", "--node-rank", "2"), {}, "--node-rank 2, but there are 2 hosts: a, b"),
        (("--workers", "2"), {"RANK": "0", "WORLD_SIZE": "2"}, "--workers means nothing under torchrun"),
        (("--hosts", "a,,b"), {}, "--hosts 'a,,b'"),
        (("--hosts", "a,b", "--subnet", "10.0.0/8"), {}, "--subnet '10.0.0/8' is no IPv4 subnet"),
    ],
)
def test_an_option_without_effect_is_refused(monkeypatch, capsys, tmp_path, options, environment, words):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", "1")
    arguments = ("train", "phrasebook", "--data", tmp_path, "--run", tmp_path / "run", *options)
    assert dragoman_here(monkeypatch, *arguments) == 2
    assert words in capsys.readouterr().err


def test_torchrun_starts_the_ranks_itself(phrasebook_data, tmp_path):
    """`dragoman train` is one rank where torchrun's variables are set; all agree on one attempt."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "--", "dragoman", "train"]
    command += ["phrasebook", "--data", phrasebook_data, "--run", tmp_path / "run"]
    settings = changes("train.max_steps=2", "evaluate.every_steps=2", "sync.method=dense", *QUICK)
    done = subprocess.run([*map(str, command), *settings], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "2 x cpu" in done.stderr
    assert len(records(tmp_path / "run", "steps")) == 2
    assert len(read_run(tmp_path / "run").timings) == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["batch.target_tokens=102400"], "4 times the target tokens of the recipe; a learning rate of 4 (now 2)"),
        (["batch.target_tokens=102400", "optim.learning_rate=3.0"], ""),
        (["train.max_steps=5"], ""),
    ],
)
def test_more_tokens_per_step_come_with_advice_on_the_rate(capsys, settings, words):
    advise_rate("base", load_recipe("base", settings))
    said = capsys.readouterr().err
    assert words in said if words else not said
