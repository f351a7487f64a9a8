"""A run or a checkpoint as an export for this one server, made by `dragoman export` in a process of its own.

That process needs torch; the one that serves does not.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.translate.export_folder import is_export
from dragoman.translate.model_folder import find_model

NUM_COMPARED = 50  # sentences: enough to see that it is not broken; who ships a model compares more


def as_export(model: str, folder: Path, say: Callable[[str], None]) -> str:
    """The model itself where it is an export."""
    if is_export(Path(model)):
        return model
    find_model(model)  # says what is wrong with what is no model at all
    say(f"{model} is no export: converting it to CTranslate2 int8, for this server only")
    out = folder / str(len(list(folder.iterdir())))
    command = [sys.executable, "-m", "dragoman.cli", "export", model, "--to", "ctranslate2", "--out", str(out)]
    done = subprocess.run([*command, "--sentences", str(NUM_COMPARED)], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().partition("\n")[0].removeprefix("error: ")
        hint = f"dragoman export {model} --to ctranslate2 --out DIR, then serve DIR"
        raise DragomanError(f"{model} could not be converted: {reason}", hint)
    return str(out)
