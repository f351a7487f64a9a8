"""`dragoman compare` as a user types it: sentences, tables, CSV, JSON, and one clear line for what is wrong."""

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman import cli
from dragoman.commands import remote_records
from dragoman.commands.compare import short_names
from dragoman.errors import DragomanError
from dragoman.run.reader import read_manifest
from dragoman.run.records import EvalRecord, EvalSentence, TimingRecord, to_line
from dragoman.run.writer import append_lines, write_eval_sentences, write_manifest
from sample_run import write_sample_run

NUM_STEPS = 20


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Two runs on two ranks each; `slow` waits 0.9 s longer for transfer in every step, and learned less."""
    return [
        write_run(tmp_path / "quick", transfer=0.1, learning_rate=0.003, loss=2.0),
        write_run(tmp_path / "slow", transfer=1.0, learning_rate=0.006, loss=2.5),
    ]


def write_run(path: Path, transfer: float, learning_rate: float, loss: float) -> str:
    folder = write_sample_run(path, NUM_STEPS)
    manifest = read_manifest(folder)
    recipe = {"optim": {"learning_rate": learning_rate, "betas": [0.9, 0.98]}, "train": {"max_steps": NUM_STEPS}}
    write_manifest(folder, replace(manifest, recipe=recipe, price_per_hour=3.6, currency="$"))
    for rank in (0, 1):
        folder.timing_path(rank).unlink()
        for step in range(1, NUM_STEPS + 1):
            parts = (0.0, 0.2, 0.3, transfer, 0.01, 0.0, 0.0, 0.0)
            line = TimingRecord(1, 1000.0 + step, step, rank, "a", *parts, sum(parts), exchange_start=1000.0 + step)
            append_lines(folder.timing_path(rank), [to_line(line)])
    record = EvalRecord(1, 1020.0, 20, "dev", loss, None, 40.0, 50.0, "sig", "sig", 40, 40, 400, 0.1, 0.1)
    append_lines(folder.evals_path, [to_line(record)])
    words = ["one", "two", "three", "four", "five", "six"]
    rows = [EvalSentence(n, f"s{n}", " ".join(words), " ".join(words), 10 * loss + n % 3, 10) for n in range(40)]
    write_eval_sentences(folder, 20, "dev", rows)
    return str(path)


def call(monkeypatch, *arguments: str):
    """As from the shell: the group looks the command up by the words typed."""
    monkeypatch.setattr(sys, "argv", ["dragoman", "compare", *arguments])
    return CliRunner().invoke(cli.app, ["compare", *arguments])


def test_the_sentences_stand_before_the_tables(monkeypatch, runs):
    lines = call(monkeypatch, *runs).output.splitlines()
    assert lines[0].startswith(
        "slow is 2.5 times slower per step than quick (1.51 s against 0.610 s a step): nearly all"
    )
    assert lines.index("Settings that differ") > 2
    text = "\n".join(lines)
    for words in (
        "optim.learning_rate",
        "0.61 s/step (1.64 steps/s)",
        "1.00 s  66 %",
        "dev loss after 2,000 target tokens",
        "dev loss, equal tokens",
        "+0.500 [+0.500, +0.500]",
        "beyond chance",
        "cost per BLEU point",
        "note: slow has not finished: its records end at step 20 of 20.",
    ):
        assert words in text, words
    assert "optim.betas" not in text


def test_csv_has_a_row_per_figure_with_its_unit_and_a_column_per_run(monkeypatch, runs, tmp_path):
    out = tmp_path / "figures.csv"
    result = call(monkeypatch, *runs, "--csv", str(out))
    assert result.output.splitlines()[-1] == f"figures: {out}"
    rows = list(csv.reader(out.read_text(encoding="utf-8").splitlines()))
    assert rows[0] == ["figure", "quick", "slow"]
    values = {row[0]: row[1:] for row in rows}
    assert [float(value) for value in values["transfer [s/step]"]] == pytest.approx([0.1, 1.0])
    assert [float(value) for value in values["best dev loss [nats/token]"]] == [2.0, 2.5]
    assert values["setting optim.learning_rate"] == ["0.003", "0.006"]
    assert len(values) == len(rows)
    assert all(len(row) == 3 for row in rows)


def test_json_holds_all_of_it_and_nothing_else_is_printed(monkeypatch, runs, tmp_path):
    result = call(monkeypatch, *runs, "--json", "--csv", str(tmp_path / "f.csv"))
    values = json.loads(result.output)
    assert values["names"] == ["quick", "slow"]
    assert "transfer" in values["verdicts"][0]["explanation"]
    assert values["paired"][0]["delta"] == pytest.approx(0.5)
    assert (tmp_path / "f.csv").is_file()


def test_one_run_is_not_enough(monkeypatch, runs):
    error = call(monkeypatch, runs[0]).exception
    assert isinstance(error, DragomanError) and error.exit_code == 2
    assert error.message == "one run has nothing to be compared with"


def test_no_run_at_all_is_a_user_error(monkeypatch):
    assert call(monkeypatch).exit_code == 2


def test_a_folder_that_is_no_run_is_one_line(monkeypatch, runs, tmp_path):
    (tmp_path / "other").mkdir()
    for wrong in (tmp_path / "other", tmp_path / "missing"):
        error = call(monkeypatch, runs[0], str(wrong)).exception
        assert isinstance(error, DragomanError) and error.exit_code == 2
        assert str(wrong) in error.message


def test_a_csv_that_cannot_be_written_is_one_line(monkeypatch, runs, tmp_path):
    error = call(monkeypatch, *runs, "--csv", str(tmp_path / "nowhere" / "f.csv")).exception
    assert isinstance(error, DragomanError)
    assert "cannot write" in error.message


def test_a_run_of_another_host_is_copied_for_a_while(monkeypatch, runs):
    copied = []

    def copy(host, path, into):
        copied.append((host.target, path, into))
        target = into / Path(path).name
        target.symlink_to(path)
        return target

    monkeypatch.setattr(remote_records, "copy_records", copy)
    result = call(monkeypatch, runs[0], f"me@far:{runs[1]}")
    assert result.output.startswith("slow is 2.5 times slower")
    assert copied[0][:2] == ("me@far", runs[1])
    assert not copied[0][2].exists()


def test_short_names_are_as_long_as_they_need_to_be(monkeypatch, tmp_path):
    assert short_names(["runs/a", "runs/b/"]) == ["a", "b"]
    assert short_names(["one/run", "two/run"]) == ["one/run", "two/run"]
    assert short_names(["x/run", "far:x/run"])[1] == "far:/x/run"
    assert short_names(["runs/a", "runs/a", "runs/a"]) == ["a", "a (2)", "a (3)"]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert short_names([".", ".."]) == ["here", tmp_path.name]
