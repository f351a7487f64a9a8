"""Libraries that only some models need: where one is missing, the user is told what to install. Imports none."""

from importlib.util import find_spec

from dragoman.errors import DragomanError


def require_library(module: str, needed_for: str) -> None:
    if find_spec(module) is None:
        raise DragomanError(f"{needed_for} needs the package {module}", f"pip install {module}")
