"""Dragoman trains Transformer translation models and tells what the run did and why.

    dragoman.Translator("runs/demo").translate(["The child reads a letter."])
    dragoman.open_run("runs/demo").evals[-1].bleu
    dragoman.load_recipe("small", ["train.max_steps=5000"])

Importing the package imports nothing else: each name is fetched when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.recipe import load_recipe
    from dragoman.run.reader import read_run as open_run
    from dragoman.translate.translator import Translator

__version__ = "0.1.0"
__all__ = ["Translator", "__version__", "load_recipe", "open_run"]

_HOMES = {
    "Translator": ("dragoman.translate.translator", "Translator"),
    "load_recipe": ("dragoman.recipe", "load_recipe"),
    "open_run": ("dragoman.run.reader", "read_run"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
