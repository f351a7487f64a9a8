"""The manifest of a data folder: what went in, what came out, and the hashes that prove it.

Plain data with its JSON form. Knows nothing of how the text was read or encoded.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.config import DataConfig, VocabConfig
from dragoman.errors import DragomanError

SCHEMA = 1
MANIFEST_NAME = "manifest.json"
# Of files in this very folder: a name with a slash could lead to any file of the machine.
FileName = Annotated[str, Field(pattern=r"^[^/\x00\n]+$", max_length=200)]


class Record(BaseModel):
    """Strict and frozen, as every record on disk."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class InputFile(Record):
    path: str
    num_bytes: int
    sha256: str


class Example(Record):
    """One rejected pair, cut to a readable length."""

    line: int
    source: str
    target: str


class Rejects(Record):
    num_pairs: int
    examples: list[Example]


class CorpusStats(Record):
    """One corpus before cleaning, after it, and as it is trained on (weighted copies included)."""

    name: str
    weight: float
    files: list[InputFile]
    raw_lines: int
    raw_source_bytes: int
    raw_target_bytes: int
    clean_lines: int = Field(description="pairs left by filters, deduplication and overlap, before weighting")
    clean_source_bytes: int
    clean_target_bytes: int
    train_pairs: int = Field(description="pairs in the shards, copies by weight included")
    bpe_source_bytes: int = Field(description="bytes of the pieces joined by spaces, a newline a line")
    bpe_target_bytes: int
    source_tokens: int = Field(description="ids in the shards, EOS included")
    target_tokens: int
    rejected: dict[str, Rejects]


class LengthStats(Record):
    """Sequence lengths in pieces, EOS included."""

    mean: float
    min: int
    p10: int
    p50: int
    p90: int
    p99: int
    max: int


class ShardInfo(Record):
    name: FileName
    num_pairs: Annotated[int, Field(ge=1)]
    source_tokens: int
    target_tokens: int
    source_sha256: str
    target_sha256: str
    lengths_sha256: str


class EvalInfo(Record):
    name: FileName
    num_pairs: int
    source_sha256: str
    target_sha256: str


class VocabInfo(Record):
    size: int
    sha256: str
    origin: str = Field(description="`learned`, or the file it was loaded from")
    sample_lines: int = Field(description="lines it was learned from, both sides together")
    placeholders: list[str]


class Settings(Record):
    data: DataConfig
    vocab: VocabConfig
    skip_invalid: bool


class Manifest(Record):
    """`manifest.json`, written last: a folder that has one is finished."""

    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    languages: str = Field(pattern="^[^-]+-[^-]+$", description="source and target, such as en-de")
    fingerprint: str = Field(description="sha256 over languages and the hashes of vocabulary, shards and eval sets")
    plan: str = Field(description="sha256 over inputs and settings; the same plan is not prepared twice")
    num_train_pairs: int
    source_tokens: int
    target_tokens: int
    placeholder_pairs: int = Field(description="training pairs that carry a placeholder")
    source_lengths: LengthStats
    target_lengths: LengthStats
    corpora: list[CorpusStats]
    shards: list[ShardInfo]
    vocab: VocabInfo
    dev: list[EvalInfo]
    test: list[EvalInfo]
    settings: Settings
    versions: dict[str, str]
    seconds: dict[str, float] = Field(description="wall time of each stage, over all attempts")
    notes: list[str] = Field(description="what a reader should know, such as held-out pairs")

    @property
    def source_language(self) -> str:
        return self.languages.split("-")[0]

    @property
    def target_language(self) -> str:
        return self.languages.split("-")[1]

    def to_json(self) -> str:
        return self.model_dump_json(indent=2, by_alias=True) + "\n"


def content_fingerprint(
    languages: str, vocab: VocabInfo, shards: Iterable[ShardInfo], evals: Iterable[EvalInfo]
) -> str:
    """Equal for equal bytes, wherever and whenever they were prepared."""
    digest = hashlib.sha256(f"{languages} {vocab.sha256}\n".encode())
    for shard in shards:
        line = f"{shard.name} {shard.source_sha256} {shard.target_sha256} {shard.lengths_sha256}\n"
        digest.update(line.encode())
    for entry in evals:
        digest.update(f"{entry.name} {entry.source_sha256} {entry.target_sha256}\n".encode())
    return digest.hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """The folder's manifest, or one line on why there is none to use."""
    path = folder / MANIFEST_NAME
    if not path.is_file():
        raise DragomanError(
            f"{folder} is not a prepared data folder: it has no {MANIFEST_NAME}",
            f"make one with `dragoman prepare ... --out {folder}`",
        )
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DragomanError(f"cannot read {path}: {error.strerror}", "copy the folder anew") from None
    except ValidationError as error:
        kinds = {".".join(str(part) for part in entry["loc"]) for entry in error.errors()}
        if kinds == {""}:
            raise DragomanError(f"{path} is damaged: it is no JSON object", "copy the folder anew") from None
        raise DragomanError(
            f"{folder} was made by another version of dragoman: its manifest differs in {', '.join(sorted(kinds)[:3])}",
            "prepare the data again, into a new folder",
        ) from None


def write_manifest(manifest: Manifest, folder: Path) -> None:
    write_atomically(folder / MANIFEST_NAME, manifest.to_json().encode(), is_durable=True)


def write_atomically(path: Path, data: bytes, is_durable: bool = False) -> None:
    """The final name appears only with all of its bytes; durable: even if the power fails next."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    part.replace(path)
