import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from dragoman.cli import run_guarded
from dragoman.commands.prepare import prepare
from dragoman.data.shards import open_shards

WORDS = ["ba", "ko", "mi", "ren", "tal", "su", "vor", "ne", "gau", "bako", "miren", "talsu", "vorne", "drope"]


def sentences(num_pairs: int) -> list[tuple[str, str]]:
    draw = random.Random(3)
    rows = [[draw.choice(WORDS) for _ in range(8)] for _ in range(num_pairs)]
    return [(" ".join(row), " ".join(reversed(row))) for row in rows]


class Text:
    """A corpus on disk that a test spoils in one place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "data"
        pairs = sentences(400)
        self.sources, self.targets = ([pair[side].encode() for pair in pairs] for side in (0, 1))

    def write(self) -> list[str]:
        for name, lines in (("a.en", self.sources), ("a.de", self.targets)):
            (self.folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
        source, target = str(self.folder / "a.en"), str(self.folder / "a.de")
        return ["--languages", "en-de", "--source", source, "--target", target, "--vocab-size", "350"]

    def run(self, *arguments: str) -> int:
        app = typer.Typer(pretty_exceptions_enable=False)
        app.command()(prepare)
        command = typer.main.get_command(app)
        every = [*self.write(), "--out", str(self.out), *arguments]
        return run_guarded(lambda: command(every, standalone_mode=False))


@pytest.fixture
def text(tmp_path: Path) -> Text:
    return Text(tmp_path)


def test_plain_files(text: Text, capsys: pytest.CaptureFixture[str]):
    assert text.run() == 0
    shown = capsys.readouterr()
    assert "is ready: 360 training pairs in 1 shard" in shown.out
    assert "before cleaning" in shown.out
    assert "held 20 pairs out of the training text as dev set" in shown.err
    manifest = open_shards(text.out).manifest
    assert manifest.languages == "en-de"
    assert manifest.vocab.size == 350
    assert text.run() == 0
    assert "already prepared" in capsys.readouterr().err


def test_json_is_the_manifest(text: Text, capsys: pytest.CaptureFixture[str]):
    assert text.run("--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads((text.out / "manifest.json").read_text())
    assert shown["schema"] == 1


def test_rejects_are_shown_with_an_example(text: Text, capsys: pytest.CaptureFixture[str]):
    text.sources[7] = text.targets[7] = b"[bold]same[/bold] on both"
    assert text.run() == 0
    assert "8: [bold]same[/bold] on both |" in capsys.readouterr().out


def test_tsv_weights_and_set(text: Text, tmp_path: Path):
    rows = [source + b"\t" + target + b"\n" for source, target in zip(text.sources, text.targets, strict=True)]
    (tmp_path / "b.tsv").write_bytes(b"".join(reversed(rows[:200])))
    (tmp_path / "c.tsv").write_bytes(b"".join(rows[200:]))
    files = ["--tsv", str(tmp_path / "b.tsv"), "--tsv", str(tmp_path / "c.tsv")]
    assert text.run(*files, "--weight", "1", "--weight", "1", "--weight", "2", "--set", "data.max_words=20") == 0
    manifest = open_shards(text.out).manifest
    assert [(entry.name, entry.weight, entry.raw_lines) for entry in manifest.corpora] == [
        ("a", 1.0, 400),
        ("b", 1.0, 200),
        ("c", 2.0, 200),
    ]
    assert manifest.settings.data.max_words == 20
    assert manifest.corpora[1].rejected["duplicate"].num_pairs == 200


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.targets.pop(), "the two sides differ in lines: "),
        (lambda text: text.sources.__setitem__(41, b"bad \xff line"), "a.en line 42 is not valid UTF-8"),
        (lambda text: text.targets.__setitem__(0, b"a nul \0 byte"), "a.de line 1 has a NUL byte"),
        (lambda text: text.targets.__setitem__(99, b"x" * 10_000_000), "a.de line 100 is longer than 1,048,576 bytes"),
        (lambda text: text.sources.clear(), "a.en is empty"),
        (
            lambda text: text.sources.__setitem__(slice(None), [b""] * 400),
            "no training pair is left of 400 lines (400 empty)",
        ),
    ],
)
def test_bad_text_is_one_line_and_leaves_nothing(text: Text, capsys: pytest.CaptureFixture[str], spoil, message: str):
    spoil(text)
    assert text.run() == 2
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 2
    assert shown[0].startswith("error: ")
    assert message in shown[0]
    assert shown[1].startswith("  hint: ")
    assert not text.out.exists()


def test_line_counts_are_both_named(text: Text, capsys: pytest.CaptureFixture[str]):
    text.targets.pop()
    assert text.run() == 2
    error = capsys.readouterr().err
    assert "a.en has 400" in error
    assert "a.de has 399" in error


def test_invalid_lines_are_counted_and_skipped(text: Text, capsys: pytest.CaptureFixture[str]):
    text.sources[41] = b"bad \xff line"
    text.targets[3] = b"a nul \0 byte"
    text.targets[99] = b"x" * 2_000_000
    assert text.run() == 2
    assert text.run("--skip-invalid") == 0
    assert "skipped 3 invalid lines" in capsys.readouterr().err
    rejected = open_shards(text.out).manifest.corpora[0].rejected
    assert list(rejected) == ["invalid", "in_dev_or_test"]
    assert [example.line for example in rejected["invalid"].examples] == [4, 42, 100]


def test_tsv_without_two_columns(text: Text, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "b.tsv").write_bytes(b"one\teins\nonly one column\nthree\tdrei\tmore\n")
    assert text.run("--tsv", str(tmp_path / "b.tsv")) == 2
    assert "b.tsv line 2 has 1 columns, not two" in capsys.readouterr().err
    assert text.run("--tsv", str(tmp_path / "b.tsv"), "--skip-invalid") == 0
    assert open_shards(text.out).manifest.corpora[1].rejected["invalid"].num_pairs == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vocab-size", "9000"], "the corpus is too small for a vocabulary of 9,000 pieces: it can carry at most"),
        (["--source", "more.en"], "--source is given 2 times and --target 1 times"),
        (["--dev-source", "dev.en"], "--dev-source is given 1 times and --dev-target 0 times"),
        (["--dev-source", "dev.en", "--dev-target", "dev.de"], "there is no file dev.en"),
        (["--weight", "1", "--weight", "2"], "2 weights for 1 corpora"),
        (["--corpus", "mtdata:x"], "need the package mtdata"),
        (["--set", "data.max_word=3"], "did you mean 'data.max_words'"),
        (["--vocab", "none.model"], "there is no vocabulary none.model"),
    ],
)
def test_wrong_arguments(text: Text, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str):
    assert text.run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not text.out.exists()


def test_a_place_that_cannot_be_written_to(text: Text, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "file").write_text("")
    text.out = tmp_path / "file" / "below"
    assert text.run() == 2
    error = capsys.readouterr().err
    assert f"cannot write to {text.out}: Not a directory" in error and "Traceback" not in error


def test_languages_must_be_stated(text: Text, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    write = text.write
    monkeypatch.setattr(text, "write", lambda: write()[2:])
    assert text.run() == 2
    assert "the languages are not stated" in capsys.readouterr().err


def test_a_folder_of_another_version(text: Text, capsys: pytest.CaptureFixture[str]):
    assert text.run() == 0
    path = text.out / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 99}))
    assert text.run() == 2
    assert "was made by another version of dragoman" in capsys.readouterr().err


def test_the_real_command_in_worker_processes(text: Text):
    """Errors from another process keep their hint; nothing shows a traceback; torch stays out."""
    text.sources[41] = b"bad \xff line"
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "dragoman.cli",
        "prepare",
        *text.write(),
        "--out",
        str(text.out),
    ]
    done = subprocess.run(
        [*command, "--workers", "2"], capture_output=True, text=True, env=os.environ | {"COLUMNS": "80"}
    )
    shown = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert done.returncode == 2
    assert len(shown) == 2
    assert "a.en line 42 is not valid UTF-8" in shown[0]
    assert "--skip-invalid" in shown[1]
    assert not any(line.rpartition("|")[2].strip() == "torch" for line in done.stderr.splitlines())
    assert "numpy" in done.stderr
