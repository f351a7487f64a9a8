import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dragoman import cli
from dragoman.commands.report import parse_codes, parse_formats
from dragoman.errors import CheckFailed, DragomanError
from dragoman.run.folder import create_run_folder
from dragoman.run.records import DataSummary, Manifest, SideSize, StepRecord, TimingRecord, to_line
from dragoman.run.writer import append_lines, write_manifest
from sample_run import write_sample_run
from stand_in_hosts import stand_in_hosts


@pytest.fixture
def run_folder(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    data = DataSummary("d", "f", "en-de", 3, SideSize("en"), SideSize("de"))
    write_manifest(folder, Manifest("trial", 0.0, {"name": "tiny"}, "h", {}, 1, "cpu", "fp32", 10, data))
    return folder.path


@pytest.fixture
def starving_run(tmp_path):
    """Three quarters of every step wait for data."""
    folder = write_sample_run(tmp_path / "starving", num_steps=0)
    for step in range(1, 61):
        append_lines(
            folder.steps_path, [to_line(StepRecord(1, 1000.0 + step, step, 2.0, 2.0, 1e-3, 0.5, 9, 9, 4, 1.0))]
        )
        for rank, host in enumerate("ab"):
            parts = (0.75, 0.1, 0.1, 0.02, 0.03, 0.0, 0.0, 0.0)
            append_lines(
                folder.timing_path(rank), [to_line(TimingRecord(1, 1000.0 + step, step, rank, host, *parts, 1.0))]
            )
    return folder.path


def call(monkeypatch, *arguments: str):
    """As from the shell: the group looks the command up by the words typed."""
    monkeypatch.setattr(sys, "argv", ["dragoman", *arguments])
    return CliRunner().invoke(cli.app, list(arguments))


def test_it_writes_the_page_into_the_run_and_says_the_three_lines(monkeypatch, run_folder):
    lines = call(monkeypatch, "report", str(run_folder)).output.splitlines()
    assert lines[:2] == [str(run_folder / "report.html"), "  No step is recorded."]
    assert "<!doctype html>" in (run_folder / "report.html").read_text()


def test_several_formats_beside_the_name_given(monkeypatch, run_folder, tmp_path):
    out = tmp_path / "mine.htm"
    call(monkeypatch, "report", str(run_folder), "--out", str(out))
    assert out.is_file()
    call(monkeypatch, "report", str(run_folder), "--out", str(out), "--format", "html,md,json")
    assert (tmp_path / "mine.html").is_file()
    assert (tmp_path / "mine.md").read_text().startswith("# English to German")
    assert json.loads((tmp_path / "mine.json").read_text())["manifest"]["name"] == "trial"


def test_a_worksheet_says_nothing_of_the_verdict(monkeypatch, starving_run):
    result = call(monkeypatch, "report", str(starving_run), "--worksheet", "--format", "html,md")
    assert result.output.splitlines() == [str(starving_run / "report.html"), str(starving_run / "report.md")]
    assert "Dragoman worksheet" in (starving_run / "report.html").read_text()


def test_formats():
    assert parse_formats("json, HTML,json,md") == ["json", "html", "md"]
    for wrong in ("pdf", "", ","):
        with pytest.raises(DragomanError, match="no report format"):
            parse_formats(wrong)


def test_a_finding_that_was_asked_about_fails_the_command(monkeypatch, starving_run):
    fine = call(monkeypatch, "report", str(starving_run), "--fail-on", "diverged", "--fail-on", "straggler,overfitting")
    assert fine.exit_code == 0, fine.exception
    result = call(monkeypatch, "report", str(starving_run), "--fail-on", "diverged,input-bound")
    assert isinstance(result.exception, CheckFailed)
    assert result.exception.message.startswith("input-bound: ")
    assert str(starving_run / "report.html") in result.output, "the report is written all the same"


def test_a_worksheet_is_checked_like_a_report(monkeypatch, starving_run):
    result = call(monkeypatch, "report", str(starving_run), "--worksheet", "--fail-on", "input-bound")
    assert isinstance(result.exception, CheckFailed)


def test_an_unknown_code_is_refused_with_the_nearest():
    assert parse_codes(["straggler, diverged", "straggler"]) == ["straggler", "diverged"]
    with pytest.raises(DragomanError, match="no finding has the code 'netwrok-bound'") as raised:
        parse_codes(["netwrok-bound"])
    assert (raised.value.hint, raised.value.exit_code) == ("did you mean network-bound?", 2)
    with pytest.raises(DragomanError) as raised:
        parse_codes(["zzz"])
    assert "plateau" in raised.value.hint


def test_what_is_no_run_is_one_line(monkeypatch, tmp_path):
    result = call(monkeypatch, "report", str(tmp_path))
    assert isinstance(result.exception, DragomanError)
    assert "no manifest.json" in result.exception.message


def test_a_run_on_another_host_is_read_from_a_copy_of_its_records(monkeypatch, tmp_path):
    stand_in_hosts(tmp_path, monkeypatch, "a")
    there = write_sample_run(tmp_path / "a" / "runs" / "mine")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    copied = []
    from dragoman.launch.copying import transfer

    real = transfer.receive_files
    monkeypatch.setattr(
        transfer,
        "receive_files",
        lambda host, path, wanted, *rest: copied.extend(wanted) or real(host, path, wanted, *rest),
    )
    result = call(monkeypatch, "report", "a:runs/mine")
    assert result.exit_code == 0, result.exception
    assert result.output.splitlines()[0] == "mine-report.html"
    assert "20 steps" in (home / "mine-report.html").read_text()
    assert "steps.jsonl" in copied
    assert not [name for name in copied if name.startswith("checkpoints")]
    assert not (there.path / "report.html").exists()


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['dragoman', 'report', '--help']\n"
        "from dragoman.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print('heavy:', sorted({'torch', 'altair', 'jinja2', 'numpy'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "heavy: []" in result.stdout
    assert "--format" in result.stdout
