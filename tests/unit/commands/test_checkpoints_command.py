"""`dragoman checkpoints` as a user calls it."""

import json

import pytest
from typer.testing import CliRunner

from dragoman import cli
from dragoman.run.folder import RunFolder
from sample_run import files_of, write_checkpoint, write_sample_run
from stand_in_hosts import stand_in_hosts


@pytest.fixture
def run(tmp_path) -> RunFolder:
    folder = write_sample_run(tmp_path / "run")
    for step in (30, 40, 50):
        write_checkpoint(folder, step, num_bytes=4_000)
    folder.set_pointer("last", 40)
    return folder


def call(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["dragoman", *map(str, arguments)])
    return CliRunner().invoke(cli.app, [str(word) for word in arguments])


def test_checkpoints_are_listed_and_nothing_is_written(monkeypatch, run):
    before = files_of(run.path)
    result = call(monkeypatch, "checkpoints", run.path)
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.output.splitlines()}
    assert lines["step-00000040"].split()[-2:] == ["last", "whole"]
    assert lines["step-00000050"].endswith("whole, but not on every host: it does not count")
    assert result.output.splitlines()[-1].endswith("; training goes on from step-00000040")
    assert files_of(run.path) == before


def test_a_damaged_one_is_named_and_the_exit_code_says_so(monkeypatch, run):
    weights = run.step_checkpoint(40) / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    result = call(monkeypatch, "checkpoints", run.path)
    assert result.exit_code == 1
    assert "damaged: weights.safetensors has other bytes than were written" in result.output
    assert result.output.splitlines()[-1].endswith("; training goes on from step-00000030")


def test_a_run_on_another_host_is_verified_there(monkeypatch, tmp_path):
    stand_in_hosts(tmp_path, monkeypatch, "a")
    write_checkpoint(write_sample_run(tmp_path / "a" / "runs" / "mine"), 30, num_bytes=4_000)
    result = call(monkeypatch, "checkpoints", "a:runs/mine", "--json")
    assert result.exit_code == 0, result.output
    assert "step-00000030" in [entry["name"] for entry in json.loads(result.stdout)]


def test_a_run_without_any_says_so(monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    result = call(monkeypatch, "checkpoints", tmp_path / "empty")
    assert (result.exit_code, result.output) == (0, "no checkpoint yet\n")


def test_no_folder_is_one_line(tmp_path, monkeypatch):
    result = call(monkeypatch, "checkpoints", tmp_path / "none")
    assert result.exit_code != 0
    assert "there is no folder" in str(result.exception)
