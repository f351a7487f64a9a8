import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dragoman import cli
from dragoman.commands.report import parse_formats
from dragoman.errors import DragomanError
from dragoman.run.folder import create_run_folder
from dragoman.run.records import DataSummary, Manifest, SideSize
from dragoman.run.writer import write_manifest


@pytest.fixture
def run_folder(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    data = DataSummary("d", "f", "en-de", 3, SideSize("en"), SideSize("de"))
    write_manifest(folder, Manifest("trial", 0.0, {"name": "tiny"}, "h", {}, 1, "cpu", "fp32", 10, data))
    return folder.path


def call(monkeypatch, *arguments: str):
    """As from the shell: the group looks the command up by the words typed."""
    monkeypatch.setattr(sys, "argv", ["dragoman", *arguments])
    return CliRunner().invoke(cli.app, list(arguments))


def test_it_writes_the_page_into_the_run(monkeypatch, run_folder):
    result = call(monkeypatch, "report", str(run_folder))
    assert result.output.strip() == str(run_folder / "report.html")
    assert "<!doctype html>" in (run_folder / "report.html").read_text()


def test_both_formats_beside_the_name_given(monkeypatch, run_folder, tmp_path):
    out = tmp_path / "mine.htm"
    call(monkeypatch, "report", str(run_folder), "--out", str(out))
    assert out.is_file()
    call(monkeypatch, "report", str(run_folder), "--out", str(out), "--format", "html,json")
    assert (tmp_path / "mine.html").is_file()
    assert json.loads((tmp_path / "mine.json").read_text())["manifest"]["name"] == "trial"


def test_formats():
    assert parse_formats("json, HTML,json") == ["json", "html"]
    for wrong in ("pdf", "", ","):
        with pytest.raises(DragomanError, match="no report format"):
            parse_formats(wrong)


def test_what_is_no_run_is_one_line(monkeypatch, tmp_path):
    result = call(monkeypatch, "report", str(tmp_path))
    assert isinstance(result.exception, DragomanError)
    assert "no manifest.json" in result.exception.message


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['dragoman', 'report', '--help']\n"
        "from dragoman.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print('heavy:', sorted({'torch', 'altair', 'jinja2'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "heavy: []" in result.stdout
    assert "--format" in result.stdout
