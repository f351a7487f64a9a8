"""A model that was exported: `model.json` says what it is and holds a checksum of every file. No torch."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.config import DecodeConfig
from dragoman.containment import is_inside
from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256

NAME = "model.json"
SCHEMA = 1
EXPORT_AGAIN = "export it again, or copy it again from where it came"
Format = Literal["ctranslate2", "huggingface"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FileEntry(_Strict):
    """What a file must be for the export to be whole."""

    num_bytes: int
    sha256: str


class Origin(_Strict):
    """Where the weights came from."""

    recipe: str
    run: str | None = None  # its name, not its path: the folder may go anywhere
    step: int | None = None
    num_averaged: int = 1
    has_changed_weights: bool = False  # not the bytes that the run wrote, and somebody insisted


class ExportInfo(_Strict):
    """The contents of `model.json`."""

    schema_version: Literal[1] = Field(alias="schema")
    format: Format
    quantization: str  # float32, float16, int8, int8_float16
    dragoman: str  # the version that exported it
    created: str
    source_language: str  # "" where nobody said
    target_language: str
    max_positions: int  # the longest sequence that its position table covers
    max_pieces: int  # the longest sentence that it was trained on
    learned_placeholders: bool
    decode: DecodeConfig
    origin: Origin
    gate: dict[str, Any]  # what the check against the original found
    files: dict[str, FileEntry]


class ExportFolder:
    """An export on disk, every byte of which is as it was written."""

    def __init__(self, path: Path, info: ExportInfo) -> None:
        self.path = path
        self.info = info

    @property
    def vocab_path(self) -> Path:
        return self.path / "vocab.model"


def is_export(path: Path) -> bool:
    return (path / NAME).is_file()


def open_export(path: Path) -> ExportFolder:
    """Reads and verifies: a damaged export says what is wrong with it before anything is translated."""
    info = read_info(path)
    problems = [problem for name, entry in info.files.items() if (problem := _problem(path, name, entry))]
    if problems:
        raise DragomanError(f"the export {path} is damaged: {'; '.join(problems)}", EXPORT_AGAIN)
    if "vocab.model" not in info.files:
        raise DragomanError(f"the export {path} names no vocab.model", EXPORT_AGAIN)
    return ExportFolder(path.resolve(), info)


def read_info(path: Path) -> ExportInfo:
    """`model.json` alone."""
    try:
        return ExportInfo.model_validate_json((path / NAME).read_bytes())
    except OSError as error:
        raise DragomanError(f"cannot read {path / NAME}: {error.strerror}", EXPORT_AGAIN) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise DragomanError(f"{path / NAME} is not as it should be: {place}: {first['msg']}", EXPORT_AGAIN) from None


def _problem(folder: Path, name: str, entry: FileEntry) -> str | None:
    path = folder / name
    if not is_inside(folder, name):
        return f"{name!r} is no name of a file in it"
    if not path.is_file():
        return f"{name} is missing"
    if path.stat().st_size != entry.num_bytes:
        return f"{name} has {path.stat().st_size:,} bytes, not {entry.num_bytes:,}"
    return None if file_sha256(path) == entry.sha256 else f"{name} has another checksum"
