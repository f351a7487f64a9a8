"""The command line: a table of commands, each imported only when it is called, and one place where errors end."""

import importlib
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dragoman import __version__
from dragoman.errors import DragomanError

# Name -> what it does. `dragoman --help` reads this table, so that it imports no command.
COMMANDS = {
    "demo": "The whole job on the embedded corpus: prepare, train, evaluate, translate, report.",
    "prepare": "Turn parallel text into cleaned, shuffled, encoded shards.",
    "setup": "Install this very version and torch on the hosts, all at once.",
    "doctor": "Check the machines and measure compute, link and disk before a run.",
    "plan": "Predict step time, run time and cost of a recipe, before renting too.",
    "train": "Train a model; the same command again goes on where it was.",
    "attach": "Show a run on several hosts again, until it ends; Ctrl-C leaves it running.",
    "stop": "End every worker of a run on every host; they save first.",
    "checkpoints": "List the checkpoints of a run, every byte verified.",
    "watch": "Show a run live: a page on this machine, or --terminal.",
    "export": "Make a model to ship, for CTranslate2 or Hugging Face, checked against the original.",
    "evaluate": "Score a model: BLEU, chrF and TER with signature and confidence interval.",
    "translate": "Translate text, line by line.",
    "serve": "Serve models over HTTP: LibreTranslate's API and a page.",
    "lab": "Run a command on emulated hosts joined by a shaped link, on one Linux machine.",
    "fetch": "Bring a run home, verify it, and say whether the machines may be cancelled.",
    "report": "Write one self-contained page about a run.",
    "compare": "Put runs side by side, and say what explains the difference.",
}


class LazyGroup(TyperGroup):
    """Imports `dragoman.commands.NAME` when NAME is called and not before."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        command.command(name=cmd_name, help=COMMANDS[cmd_name])(_function(cmd_name))
        return typer.main.get_command(command)

    def invoke(self, ctx: Any) -> Any:
        """Typer would end both with exit code 1, which here means that a check said no."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # `dragoman translate ... | head` closes our output early: that is the reader's right.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


def _function(name: str) -> Callable[..., None]:
    """The command's function; while the group's own help is written, a stand-in that imports nothing."""
    if name not in sys.argv[1:]:
        return lambda: None
    return getattr(importlib.import_module(f"dragoman.commands.{name}"), name)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Train translation models on ordinary machines, and know what the run did and why.",
    epilog="Start with `dragoman demo`. Exit codes: 0 done, 1 a check said no, 2 something to mend.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"dragoman {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["DRAGOMAN_DEBUG"] = "1"


def main() -> None:
    """Entry point of the `dragoman` script: user errors become two lines and exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as what we read and write, whatever the locale
    sys.exit(run_guarded(app))


def run_guarded(function: Any, *arguments: Any) -> int:
    """Call it; turn what a user can mend into a message and an exit code."""
    try:
        function(*arguments)
    except DragomanError as error:
        if os.environ.get("DRAGOMAN_DEBUG"):
            raise
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    main()
