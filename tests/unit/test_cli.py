"""The command line as a whole: exit codes, one-line errors, and the way out."""

import os
import subprocess
import sys

import pytest

from command_line import run_dragoman
from dragoman import __version__
from dragoman.cli import COMMANDS, run_guarded
from dragoman.errors import CheckFailed, DragomanError
from dragoman.recipe import recipe_fields, shipped_recipes
from small_runs import dragoman_here


def raising(error: BaseException):
    def function() -> None:
        raise error

    return function


def test_a_user_error_is_two_lines_and_exit_code_2(capsys):
    assert run_guarded(raising(DragomanError("this is wrong", "do that"))) == 2
    assert capsys.readouterr().err == "error: this is wrong\n  hint: do that\n"


def test_a_check_that_says_no_is_exit_code_1(capsys):
    assert run_guarded(raising(CheckFailed("worse"))) == 1
    assert capsys.readouterr().err == "error: worse\n"


def test_our_own_mistakes_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        run_guarded(raising(ZeroDivisionError()))


def test_version(monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"dragoman {__version__}\n"


def test_help_names_every_command(monkeypatch, capsys):
    assert dragoman_here(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(monkeypatch, capsys, command):
    assert dragoman_here(monkeypatch, command, "--help") == 0
    assert COMMANDS[command] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "No such command 'trian'"),
        (["train", "--sett", "a=1"], "No such option"),
        (["train", "--workers", "0"], "--workers"),
        (["translate"], "MODEL"),
    ],
)
def test_a_mistyped_command_line_is_exit_code_2(monkeypatch, capsys, arguments, words):
    assert dragoman_here(monkeypatch, *arguments) == 2
    assert words in capsys.readouterr().err


def test_no_command_shows_help(monkeypatch, capsys):
    assert dragoman_here(monkeypatch) in (0, 2)
    assert "Usage" in "".join(capsys.readouterr())


def test_a_real_process_ends_with_exit_code_2_and_no_traceback():
    done = run_dragoman("train", "tinny", "--data", "d", "--run", "r", check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == "error: there is no recipe 'tinny', did you mean 'tiny'?"
    assert len(done.stderr.splitlines()) == 2


def test_debug_shows_the_traceback():
    done = run_dragoman("--debug", "train", "tinny", "--data", "d", "--run", "r", check=False)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "DragomanError" in done.stderr


def test_help_recipe_lists_every_key_and_recipe():
    shown = run_dragoman("train", "--help-recipe", env={**os.environ, "COLUMNS": "200"}).stdout
    for key, *_ in recipe_fields():
        assert any(line.split()[:1] == [key] for line in shown.splitlines()), key
    assert all(name in shown for name in shipped_recipes())


@pytest.mark.parametrize("num_characters", [1, 1_000_000])
def test_a_reader_that_leaves_early_is_no_error(num_characters):
    """`dragoman translate ... | head -n 0`, with output that fills the pipe or only waits to be flushed."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    code = (
        "import sys; from dragoman import cli; from dragoman.commands import report\n"
        f"report.report = lambda: print('x' * {num_characters})\n"
        "sys.argv = ['dragoman', 'report']; cli.main()"
    )
    with os.fdopen(write_end) as output:
        done = subprocess.run([sys.executable, "-c", code], stdout=output, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_is_one_word_and_exit_code_130(monkeypatch, capsys):
    from dragoman.commands import report

    monkeypatch.setattr(report, "parse_formats", lambda _: raising(KeyboardInterrupt())())
    assert dragoman_here(monkeypatch, "report", "somewhere") == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_message_never_steers_a_terminal_and_can_always_be_written():
    error = DragomanError("there is no \x1b[31m\ud800 file", "a\tb")
    assert error.message == "there is no ?[31m? file"
    assert error.hint == "a?b"
