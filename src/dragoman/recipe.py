"""Recipes as files: find, read, change by `--set`, and say in one line what is wrong with one.

Sits on `config`, which holds the settings themselves.
"""

import difflib
import json
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dragoman.config import Recipe
from dragoman.errors import DragomanError

# What TOML's reader raises: ValueError for thousands of digits too, RecursionError for lists in lists in lists.
UNREADABLE = (ValueError, RecursionError)
_SHOWN_CHARS = 80  # of a value that is refused


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with Dragoman."""
    folder = resources.files("dragoman") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_recipe(name_or_path: str, changes: Sequence[str] = ()) -> Recipe:
    """A shipped recipe by name, or a TOML file by path, with `key=value` changes applied."""
    text, origin = _read_text(name_or_path)
    try:
        values = tomllib.loads(text)
    except UNREADABLE as error:
        raise DragomanError(f"{origin} is not valid TOML: {error}", "mend that line of the recipe") from None
    values.setdefault("name", Path(name_or_path).stem)
    for change in changes:
        _apply_change(values, change)
    return parse_recipe(values, origin)


def parse_recipe(values: dict[str, Any], origin: str) -> Recipe:
    """Validate a recipe's values; the first mistake becomes one line with the nearest valid name."""
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise _explain(error, origin) from None


def recipe_fields() -> Iterator[tuple[str, str, str, str]]:
    """(key, type, default, meaning) of every setting, in order: the one source of the recipe's documentation."""
    for section, field in Recipe.model_fields.items():
        default = field.default
        if not isinstance(default, BaseModel):
            yield section, "text", json.dumps(default), field.description or ""
            continue
        properties = type(default).model_json_schema()["properties"]
        for key, inner in type(default).model_fields.items():
            value = json.dumps(inner.default)
            yield f"{section}.{key}", _type_name(properties[key]), value, inner.description or ""


def _type_name(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " | ".join(_type_name(choice) for choice in schema["anyOf"] if choice.get("type") != "null")
    names = {"string": "text", "array": "list", "number": "number", "integer": "integer", "boolean": "true | false"}
    return names.get(schema.get("type", ""), "text")


def _read_text(name_or_path: str) -> tuple[str, str]:
    if name_or_path in shipped_recipes():
        resource = resources.files("dragoman") / "recipes" / f"{name_or_path}.toml"
        return resource.read_text(encoding="utf-8"), f"recipe {name_or_path}"
    path = Path(name_or_path)
    if not _is_file(path):
        names = shipped_recipes()
        raise DragomanError(
            f"there is no recipe {name_or_path!r}{_did_you_mean(name_or_path, names)}",
            f"name one of {', '.join(names)}, or a TOML file",
        )
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except UnicodeDecodeError:
        raise DragomanError(f"{path} is not UTF-8 text", "name a TOML recipe") from None
    except OSError as error:
        raise DragomanError(f"cannot read {path}: {error.strerror}", "name a TOML recipe") from None


def _is_file(path: Path) -> bool:
    """False too for what no disk could have: a name that is too long, or has a NUL in it."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _apply_change(values: dict[str, Any], change: str) -> None:
    """`optim.warmup_steps=8000`: the value is TOML, or plain text where TOML cannot read it."""
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise DragomanError(f"--set {change!r} is not key=value", "for example --set optim.warmup_steps=8000")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except UNREADABLE:
        value = text
    *sections, last = key.strip().split(".")
    table = values
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise DragomanError(f"--set {key}: {section} is not a section", "see `dragoman train --help-recipe`")
        table = cast("dict[str, Any]", table)
    table[last] = value


def _explain(error: ValidationError, origin: str) -> DragomanError:
    errors = error.errors()
    first, key = errors[0], _key(errors[0]["loc"])
    if first["type"] == "extra_forbidden":
        return DragomanError(
            f"{origin}: unknown key {key!r}{_did_you_mean(key, known_keys())}",
            "`dragoman train --help-recipe` lists every key",
        )
    message = " or ".join([first["msg"].removeprefix("Value error, "), *_other_kinds(errors)])
    given = "" if isinstance(first["input"], dict) else f", not {shown(first['input'])}"
    return DragomanError(
        f"{origin}: {key or 'the recipe'}: {message}{given}",
        "`dragoman train --help-recipe` lists every key and its type",
    )


def shown(value: Any) -> str:
    """A value that is refused, as a message may quote it: whatever it is, and however long."""
    try:
        text = json.dumps(value, default=str)
    except UNREADABLE:
        return "that"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _other_kinds(errors: list[ErrorDetails]) -> list[str]:
    """A setting that may be of several kinds has an error for each, whose place ends in the kind's name."""
    key = errors[0]["loc"][:2]
    same = [error for error in errors[1:] if error["loc"][:2] == key and isinstance(error["loc"][-1], str)]
    return [error["msg"].removeprefix("Input should be ") for error in same if len(error["loc"]) > 2]


def _key(location: tuple[int | str, ...]) -> str:
    """`batch.num_microbatches`: section and key, without what pydantic names behind them: a place, a kind of value."""
    return ".".join(str(part) for part in location[:2])


def known_keys() -> list[str]:
    """Every valid key: `optim` and `optim.warmup_steps` alike."""
    keys = [key for key, *_ in recipe_fields()]
    return keys + [name for name in Recipe.model_fields if name not in keys]


def _did_you_mean(word: str, known: Sequence[str]) -> str:
    """Nearest by spelling; a right key in the wrong section counts as near too."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    last = word.rpartition(".")[2]
    same = [key for key in known if key.rpartition(".")[2] == last]
    best = same or near or difflib.get_close_matches(last, known, n=1, cutoff=0.6)
    return f", did you mean {best[0]!r}?" if best else ""
