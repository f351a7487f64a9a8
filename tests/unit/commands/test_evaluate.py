import json
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from dragoman import cli
from dragoman.data import shards
from dragoman.errors import CheckFailed, DragomanError
from dragoman.run.folder import create_run_folder
from dragoman.run.records import DataSummary, Manifest, SideSize
from dragoman.run.writer import write_manifest

REFERENCES = [f"Satz Nummer {number} steht hier und ist lang genug ." for number in range(40)]


class FakeTranslator:
    """`good` knows the reference, `bad` spoils the second half of every sentence."""

    asked: ClassVar[list[dict[str, object]]] = []

    def __init__(self, model, threads):
        assert threads is None
        self.model = str(model)

    def translate(self, sentences, on_progress, **options):
        self.asked.append(options)
        on_progress(len(sentences))
        lines = [REFERENCES[int(line.split()[-1])] for line in sentences]
        if "bad" in self.model:
            lines = [" ".join([*line.split()[:4], "x", "y"]) for line in lines]
        return [[SimpleNamespace(text=line, score=0.0)] for line in lines]


@pytest.fixture(autouse=True)
def fake_translator(monkeypatch):
    module = ModuleType("dragoman.translate.translator")
    module.Translator = FakeTranslator
    monkeypatch.setitem(sys.modules, "dragoman.translate.translator", module)
    FakeTranslator.asked.clear()


@pytest.fixture
def files(tmp_path):
    source, target = tmp_path / "test.en", tmp_path / "test.de"
    source.write_text("".join(f"sentence {number}\n" for number in range(40)))
    target.write_text("".join(f"{line}\n" for line in REFERENCES))
    return ["--source", str(source), "--target", str(target)]


def call(monkeypatch, *arguments: str):
    monkeypatch.setattr(sys, "argv", ["dragoman", *arguments])
    return CliRunner().invoke(cli.app, list(arguments))


def test_a_table_with_value_interval_and_signature(monkeypatch, files):
    result = call(monkeypatch, "evaluate", "good", *files)
    assert result.exit_code == 0, result.exception
    assert "good on test.en, 40 sentences" in result.output
    assert "BLEU  100.00  [100.00, 100.00]  nrefs:1|case:mixed|eff:no|tok:13a" in result.output
    assert "TER     0.00" in result.output


def test_json_and_the_translations_kept(monkeypatch, files, tmp_path):
    out = tmp_path / "hyps.txt"
    result = call(monkeypatch, "evaluate", "bad", *files, "--json", "--out", str(out), "--beam", "2")
    (values,) = json.loads(result.output)["sets"]
    assert values["num_sentences"] == 40
    assert values["scores"]["bleu"]["value"] < 60
    assert values["comparison"] is None
    assert out.read_text().splitlines()[7] == "Satz Nummer 7 steht x y"
    assert FakeTranslator.asked == [{"beam": 2}]


def test_a_comparison_and_its_check(monkeypatch, files):
    worse = call(monkeypatch, "evaluate", "bad", *files, "--against", "good", "--fail-if-worse")
    assert isinstance(worse.exception, CheckFailed)
    assert worse.exception.exit_code == 1
    assert "beyond chance" in worse.output
    assert "other     Satz Nummer" in worse.output
    better = call(monkeypatch, "evaluate", "good", *files, "--against", "bad", "--fail-if-worse")
    assert better.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fail-if-worse"], "needs a model to compare with"),
        (["--source", "SOURCE"], "belong together"),
        (["--source", "SOURCE", "--target", "nowhere"], "nowhere"),
        (["--source", "SOURCE", "--target", "SHORT"], "40"),
        (["--source", "SOURCE", "--target", "EMPTY"], "empty"),
        (["--source", "SOURCE", "--target", "LATIN"], "UTF-8"),
        ([], "there is no model"),
    ],
)
def test_mistakes_are_one_line(monkeypatch, tmp_path, files, arguments, words):
    (tmp_path / "short").write_text("eins\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "latin").write_bytes("Straße\n".encode("latin-1") * 40)
    names = {"SOURCE": files[1], **{name.upper(): str(tmp_path / name) for name in ("short", "empty", "latin")}}
    result = call(monkeypatch, "evaluate", "nomodel", *[names.get(word, word) for word in arguments])
    assert isinstance(result.exception, DragomanError), result.exception
    assert words in result.exception.message


@pytest.fixture
def run_with_data(tmp_path, monkeypatch):
    """A run whose data folder holds one dev and two test sets."""
    data = tmp_path / "data"
    for split, name, size in (("dev", "held-out", 3), ("test", "news", 5), ("test", "talks", 4)):
        sources = [f"sentence {number}" for number in range(size)]
        shards.write_eval_set(data / split, name, sources, REFERENCES[:size])

    def sets(split, *entries):
        return [shards.EvalSet(name, *shards.eval_paths(data / split, name), size) for name, size in entries]

    opened = SimpleNamespace(
        folder=data,
        manifest=SimpleNamespace(target_language="de"),
        test_sets=sets("test", ("news", 5), ("talks", 4)),
        dev_sets=sets("dev", ("held-out", 3)),
    )
    monkeypatch.setattr(shards, "open_shards", lambda folder: opened if folder == data else 1 / 0)
    folder = create_run_folder(tmp_path / "good-run")
    summary = DataSummary(str(data), "f", "en-de", 3, SideSize("en"), SideSize("de"))
    write_manifest(folder, Manifest("trial", 0.0, {}, "h", {}, 1, "cpu", "fp32", 10, summary))
    folder.step_checkpoint(10).mkdir()
    return folder


def test_without_files_the_runs_own_test_sets_are_used(monkeypatch, run_with_data):
    for model in (run_with_data.path, run_with_data.step_checkpoint(10)):
        output = json.loads(call(monkeypatch, "evaluate", str(model), "--json").output)
        assert [(entry["name"], entry["num_sentences"]) for entry in output["sets"]] == [("news", 5), ("talks", 4)]


def test_one_set_by_name(monkeypatch, run_with_data):
    output = call(monkeypatch, "evaluate", str(run_with_data.path), "--set-name", "held-out").output
    assert "on held-out, 3 sentences" in output
    wrong = call(monkeypatch, "evaluate", str(run_with_data.path), "--set-name", "nwes")
    assert "news, talks, held-out" in wrong.exception.hint


def test_one_file_for_two_sets_is_refused(monkeypatch, run_with_data):
    result = call(monkeypatch, "evaluate", str(run_with_data.path), "--out", "hyps.txt")
    assert "there are 2 sets" in result.exception.message


def test_a_data_folder_that_is_gone(monkeypatch, run_with_data, tmp_path):
    (tmp_path / "data").rename(tmp_path / "moved")
    result = call(monkeypatch, "evaluate", str(run_with_data.path))
    assert "is not here" in result.exception.message


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['dragoman', 'evaluate', '--help']\n"
        "from dragoman.cli import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print('heavy:', sorted({'torch', 'sacrebleu', 'numpy'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "heavy: []" in result.stdout
    assert "--fail-if-worse" in result.stdout
