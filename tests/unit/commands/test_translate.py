"""`dragoman translate`: lines in, lines out."""

import io
import os
import subprocess
import sys

import pytest

from dragoman.commands import translate as command
from dragoman.translate import translator
from dragoman.translate.parts import Hypothesis
from small_runs import dragoman_here


@pytest.fixture
def shouting(monkeypatch):
    """A translator that writes in capitals."""
    asked: list = []

    class Fake:
        num_cut = 0
        languages = ("en", "de")

        def __init__(self, *arguments) -> None:
            asked.append(arguments)

        def translate(self, lines, *, num_best, alignments, **options):
            asked.append({"lines": list(lines), **options})
            pairs = tuple((word, word) for word in range(len(lines[0].split()))) if alignments else None
            return [[Hypothesis(line.upper(), -rank / 2, pairs) for rank in range(num_best)] for line in lines]

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
    assert shouting[0] == ("runs/a", "cpu", 1)
    assert [call["lines"] for call in shouting[1:]] == [["a", "b", "c"], ["d", "e"]]
    assert [(call["beam"], call["length_penalty"], call["max_length"]) for call in shouting[1:]] == [(2, 0.6, 9)] * 2


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
        "import sys; from types import ModuleType; from dragoman.translate.parts import Hypothesis\n"
        "module = sys.modules['dragoman.translate.translator'] = ModuleType('translator')\n"
        "class Translator:\n"
        "    num_cut, languages = 0, ('en', 'de')\n"
        "    def __init__(self, *_): pass\n"
        "    def translate(self, lines, **_): return [[Hypothesis(line, 0.0)] for line in lines]\n"
        "module.Translator, module.Sampling = Translator, None\n"
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


def test_a_line_of_several_sentences_keeps_its_layout(monkeypatch, capsys, shouting):
    give(monkeypatch, b"  - One.  Two?\n\n 42 \n\tThree.\n")
    assert dragoman_here(monkeypatch, "translate", "runs/a") == 0
    assert capsys.readouterr().out == "  - ONE.  TWO?\n\n 42 \n\tTHREE.\n"
    assert shouting[1]["lines"] == ["One.", "Two?", "Three."]


def test_without_splitting_a_line_goes_as_it_is(monkeypatch, capsys, shouting):
    give(monkeypatch, b"One.  Two?\n")
    assert dragoman_here(monkeypatch, "translate", "runs/a", "--no-split", "--no-keep", "--prefix", "O") == 0
    assert shouting[1]["lines"] == ["One.  Two?"]
    assert (shouting[1]["keep"], shouting[1]["prefixes"]) == (False, ["O"])


def test_words_of_a_line_are_counted_over_its_sentences(monkeypatch, capsys, shouting, tmp_path):
    give(monkeypatch, b"- One two. Six ten.\n\n")
    assert dragoman_here(monkeypatch, "translate", "runs/a", "--alignments", tmp_path / "pairs") == 0
    assert (tmp_path / "pairs").read_text() == "1-1 2-2 3-3 4-4\n\n"


@pytest.mark.parametrize(
    ("name", "text"), [("a.html", "<h1>One</h1><p>two &amp; 3.</p>"), ("a.md", "# One\n\n`code` two")]
)
def test_documents_by_their_name(monkeypatch, shouting, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert dragoman_here(monkeypatch, "translate", "runs/a", tmp_path / name, "--out", tmp_path / "out") == 0
    assert (tmp_path / "out").read_text() == text.replace("One", "ONE").replace("two", "TWO")
    assert not list(tmp_path.glob(".*"))


def test_what_is_for_lines_is_refused_for_documents(monkeypatch, capsys, shouting, tmp_path):
    (tmp_path / "a.html").write_text("<p>a</p>")
    assert dragoman_here(monkeypatch, "translate", "runs/a", tmp_path / "a.html", "--n-best", "2") == 2
    assert "are for lines, not for html" in capsys.readouterr().err


def test_half_an_output_is_none(monkeypatch, capsys, shouting, tmp_path):
    (tmp_path / "old").write_text("old")
    give(monkeypatch, b"fine\n\xff\n")
    assert dragoman_here(monkeypatch, "translate", "runs/a", "--out", tmp_path / "old") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"
    give(monkeypatch, b"fine\n")
    assert dragoman_here(monkeypatch, "translate", "runs/a", "--out", tmp_path / "no/such") == 2
    assert "cannot write" in capsys.readouterr().err
