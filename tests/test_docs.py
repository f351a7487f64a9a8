"""The documentation says what is so: commands parse, links lead somewhere, recipes load, the README's walk works."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

import dragoman
from dragoman import cli
from dragoman.data.phrasebook.generate import phrasebook
from dragoman.model.size import size_of
from dragoman.model.transformer import Transformer
from dragoman.recipe import load_recipe, shipped_recipes
from dragoman.run.reader import read_run

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(dragoman [^`]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHELL_OPERATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "(", ")"}


def blocks(page: Path, *kinds: str) -> list[str]:
    return [body for kind, body in FENCED.findall(page.read_text(encoding="utf-8")) if kind in kinds]


def shell_lines(page: Path) -> list[str]:
    """Lines of all fenced blocks but Python's and JSON's, continued lines joined, prompts removed."""
    text = "\n".join(blocks(page, "", "sh", "console", "bash", "text")).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in text.splitlines()]


def dragoman_calls(line: str) -> list[list[str]]:
    """The arguments of every `dragoman` in a line of shell: `echo a | dragoman translate RUN > out` has one."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    calls: list[list[str]] = []
    command: list[str] = []
    for word in [*lexer, ";"]:
        if word not in SHELL_OPERATORS:
            command.append(word)
            continue
        calls += [part[1:] for part in parted(command) if part[:1] == ["dragoman"] and not calls_output(part)]
        command = []
    return calls


def parted(command: list[str]) -> list[list[str]]:
    """`dragoman lab --link 1gbit -- dragoman train tiny` is two commands."""
    if "--" not in command:
        return [command]
    middle = command.index("--")
    return [command[:middle], *parted(command[middle + 1 :])]


def calls_output(command: list[str]) -> bool:
    """`dragoman 0.1.0` is what `--version` prints."""
    return re.fullmatch(r"\d+\.\d+\.\d+", command[-1]) is not None


def documented_calls() -> list[Any]:
    found = []
    for page in (README, *GUIDES):
        calls = [
            call for line in shell_lines(page) if re.search(r"(^|\| *)dragoman ", line) for call in dragoman_calls(line)
        ]
        found += [pytest.param(call, id=f"{page.stem}: {' '.join(call)}") for call in calls]
    return found


def parser_of(name: str, monkeypatch) -> Any:
    assert name in cli.COMMANDS, f"there is no command {name}"
    monkeypatch.setattr(sys, "argv", ["dragoman", name])  # a command is imported only if it is on the command line
    return typer.main.get_command(cli.app).get_command(None, name)


@pytest.mark.parametrize("call", documented_calls())
def test_every_command_line_parses(call, monkeypatch):
    name, *arguments = call
    parser = parser_of(name, monkeypatch)
    if "--help" in arguments:
        return
    known = {option for parameter in parser.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options = {word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
    assert options <= known, f"dragoman {name} has no {', '.join(sorted(options - known))}"
    parser.make_context(name, arguments)


def test_there_are_command_lines_to_check():
    names = {call.values[0][0] for call in documented_calls()}
    assert {"prepare", "train", "evaluate", "translate", "report"} <= names


@pytest.mark.parametrize("page", [README, *GUIDES], ids=lambda page: page.stem)
def test_commands_in_running_text_exist(page, monkeypatch):
    for text in INLINE.findall(page.read_text(encoding="utf-8")):
        words = parted(text.split())[0][1:]
        if words[0].startswith("-"):
            continue
        parser = parser_of(words[0], monkeypatch)
        known = {option for parameter in parser.params for option in (*parameter.opts, *parameter.secondary_opts)}
        options = {re.match(r"--?[a-z-]+", word).group() for word in words if re.match(r"--?[a-z]", word)} - {"--help"}
        assert options <= known, text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_guide(name):
    assert (ROOT / "docs" / "guide" / f"{name}.md").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_examples_use_names_that_exist(page):
    for block in blocks(page, "python", "py"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module == "dragoman":
                assert {alias.name for alias in node.names} <= set(dragoman.__all__)


@pytest.mark.parametrize("name", shipped_recipes())
def test_every_shipped_recipe_loads_and_its_model_can_be_built(name):
    recipe = load_recipe(name)
    assert recipe.about, "a recipe says what it is for"
    with torch.device("meta"):
        model = Transformer(recipe.model, recipe.vocab.size)
    assert size_of(recipe.model, recipe.vocab.size).num_parameters == sum(p.numel() for p in model.parameters())


def test_the_shipped_recipes_are_those_of_the_design():
    assert set(shipped_recipes()) == {"tiny", "small", "base", "big", "ende-fast", "phrasebook", "wmt14-en-de-classic"}


TINY_DATA = ["vocab.size=600", "data.held_out_pairs=30"]
TINY_TRAIN = [
    "model.d_model=32", "model.num_heads=2", "model.d_ffn=64", "model.num_encoder_layers=1",
    "model.num_decoder_layers=1", "batch.target_tokens=1000", "batch.num_microbatches=2",
    "batch.max_pieces=100", "train.max_steps=4", "evaluate.every_steps=2", "checkpoint.every_steps=2",
    "decode.max_length=12",
]  # fmt: skip


def test_the_walk_of_the_readme_works(tmp_path):
    """The first block that prepares one's own text, run as it stands but for settings that make it tiny."""
    (walk,) = [
        block for block in blocks(README, "sh", "console") if "dragoman prepare" in block and "--source" in block
    ][:1]
    for side, lines in (("en", "source"), ("de", "target")):
        sentences = phrasebook(num_train=800, num_dev=10, num_test=10).train
        (tmp_path / f"a.{side}").write_text("".join(f"{getattr(s, lines)}\n" for s in sentences), encoding="utf-8")
    shown = {}
    for line in walk.replace("\\\n", " ").splitlines():
        calls = dragoman_calls(line)
        if not calls:
            continue
        extra = {"prepare": TINY_DATA, "train": TINY_DATA + TINY_TRAIN}.get(calls[0][0], [])
        settings = " ".join(f"--set {setting}" for setting in extra)
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        command = f"set -o pipefail; {line.partition(' #')[0].removeprefix('$ ')} {settings}"
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        shown[calls[0][0]] = done.stdout
    assert list(shown) == ["prepare", "train", "evaluate", "translate", "report"]
    assert "BLEU" in shown["evaluate"]
    assert len(shown["translate"].splitlines()) == 1
    (page,) = tmp_path.rglob("report.html")
    assert "<html" in page.read_text(encoding="utf-8")
    assert len(read_run(page.parent).steps) == 4
