"""`dragoman translate`: lines in, lines out."""

import io
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from dragoman.commands import translate as command
from dragoman.translate import translator
from small_runs import dragoman_here


@pytest.fixture
def shouting(monkeypatch):
    """A translator that writes in capitals."""
    asked: list = []

    class Fake:
        num_cut = 0

        def __init__(self, *arguments) -> None:
            asked.append(arguments)

        def translate(self, lines, beam, length_penalty, max_length, num_best):
            asked.append((len(lines), beam, length_penalty, max_length, num_best))
            return [[SimpleNamespace(text=line.upper(), score=-rank / 2) for rank in range(num_best)] for line in lines]

    monkeypatch.setattr(translator, "Translator", Fake)
    return asked


def give(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_lines_of_standard_input_in_order(monkeypatch, capsys, shouting):
    give(monkeypatch, "one\n\nzwei ü\r\nno newline at the end".encode())
    assert dragoman_here(monkeypatch, "translate", "runs/a") == 0
    assert capsys.readouterr().out == "ONE\n\nZWEI Ü\nNO NEWLINE AT THE END\n"


def test_a_file_goes_in_chunks(monkeypatch, capsys, shouting, tmp_path):
    monkeypatch.setattr(command, "CHUNK_LINES", 3)
    (tmp_path / "a.txt").write_text("a\nb\nc\nd\ne\n")
    options = ("--beam", "2", "--length-penalty", "0.6", "--max-length", "9", "--device", "cpu", "--threads", "1")
    assert dragoman_here(monkeypatch, "translate", "runs/a", tmp_path / "a.txt", *options) == 0
    assert capsys.readouterr().out == "A\nB\nC\nD\nE\n"
    assert shouting == [("runs/a", "cpu", 1), (3, 2, 0.6, 9, 1), (2, 2, 0.6, 9, 1)]


def test_unicode_line_breaks_are_part_of_a_sentence(monkeypatch, capsys, shouting):
    give(monkeypatch, "a\u2028b\x85c\nd\n".encode())
    assert dragoman_here(monkeypatch, "translate", "runs/a") == 0
    assert capsys.readouterr().out == "A\u2028B\x85C\nD\n"


def test_n_best_lines_are_numbered_and_scored(monkeypatch, capsys, shouting):
    monkeypatch.setattr(command, "CHUNK_LINES", 1)
    give(monkeypatch, b"a\nb\n")
    assert dragoman_here(monkeypatch, "translate", "runs/a", "--n-best", "2") == 0
    assert capsys.readouterr().out == "1|||A|||0.0000\n1|||A|||-0.5000\n2|||B|||0.0000\n2|||B|||-0.5000\n"


@pytest.mark.parametrize("from_file", [False, True])
def test_invalid_utf8_names_the_line(monkeypatch, capsys, shouting, tmp_path, from_file):
    data = "fine\nStraße\n".encode("latin-1")
    (tmp_path / "a.txt").write_bytes(data)
    give(monkeypatch, data)
    name = tmp_path / "a.txt" if from_file else "standard input"
    arguments = (tmp_path / "a.txt",) if from_file else ()
    assert dragoman_here(monkeypatch, "translate", "runs/a", *arguments) == 2
    assert f"error: {name}, line 2: not valid UTF-8" in capsys.readouterr().err


def test_a_file_that_is_not_there(monkeypatch, capsys, shouting, tmp_path):
    assert dragoman_here(monkeypatch, "translate", "runs/a", tmp_path / "nothing.txt") == 2
    assert "cannot read" in capsys.readouterr().err
    assert shouting == []


def test_a_model_that_is_not_there(monkeypatch, capsys):
    give(monkeypatch, b"a\n")
    assert dragoman_here(monkeypatch, "translate", "runs/nowhere") == 2
    assert "error: there is no model runs/nowhere" in capsys.readouterr().err


def test_text_is_utf8_in_and_out_whatever_the_locale():
    code = (
        "import sys; from types import ModuleType, SimpleNamespace\n"
        "module = sys.modules['dragoman.translate.translator'] = ModuleType('translator')\n"
        "class Translator:\n"
        "    num_cut = 0\n"
        "    def __init__(self, *_): pass\n"
        "    def translate(self, lines, *_): return [[SimpleNamespace(text=line)] for line in lines]\n"
        "module.Translator = Translator\n"
        "from dragoman import cli; sys.argv = ['dragoman', 'translate', 'm']; cli.main()"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", code], input="grün 🚆\n".encode(), capture_output=True, env=environment
    )
    assert done.stdout == "grün 🚆\n".encode(), done.stderr.decode()


def test_a_reader_that_leaves_early_is_no_error(trained_run):
    shell = f"'{sys.executable}' -m dragoman.cli translate '{trained_run}' --beam 1 --max-length 4; echo code $? >&2"
    lines = "A dog.\n" * 3_000
    done = subprocess.run(["bash", "-c", f"({shell}) | head -n 1"], input=lines, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == "code 0\n"
