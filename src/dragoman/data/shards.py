"""Binary training data: flat little-endian uint16 ids, memory-mapped, with a length index beside them.

Reads and writes the files of a data folder. Knows ids and lengths, never text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.containment import is_inside
from dragoman.data.manifest import EvalInfo, Manifest, ShardInfo, read_manifest
from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256

if TYPE_CHECKING:
    from dragoman.data.vocab import Vocab

ID_TYPE = np.dtype("<u2")
MAX_LENGTH = 65_535  # of a side, EOS included: a length is a uint16
Ids = NDArray[np.uint16]
Offsets = NDArray[np.int64]

VOCAB_NAME = "vocab.model"
PARTS = ("source", "target", "lengths")
COPY_ANEW = "prepare the data again, or copy the folder anew"


class Shard:
    """At most `data.shard_pairs` pairs; nothing is read before it is asked for."""

    def __init__(self, folder: Path, info: ShardInfo, vocab_size: int) -> None:
        self.folder = folder
        self.vocab_size = vocab_size
        self.name = info.name
        self.num_pairs = info.num_pairs
        self.info = info

    @cached_property
    def lengths(self) -> NDArray[np.uint16]:
        """(num_pairs, 2): source and target length, EOS included."""
        lengths = self._map("lengths").reshape(self.num_pairs, 2)
        if not lengths.all() or lengths.sum(axis=0, dtype=np.int64).tolist() != [
            self.info.source_tokens,
            self.info.target_tokens,
        ]:
            raise self._damage("lengths", "other lengths than its sentences")
        return lengths

    @cached_property
    def source_ids(self) -> Ids:
        return self._map_ids("source")

    @cached_property
    def target_ids(self) -> Ids:
        return self._map_ids("target")

    @cached_property
    def source_offsets(self) -> Offsets:
        """(num_pairs + 1): pair i is source_ids[offsets[i]:offsets[i + 1]]."""
        return offsets_of(self.lengths[:, 0])

    @cached_property
    def target_offsets(self) -> Offsets:
        return offsets_of(self.lengths[:, 1])

    def source(self, index: int) -> Ids:
        return self.source_ids[self.source_offsets[index] : self.source_offsets[index + 1]]

    def target(self, index: int) -> Ids:
        return self.target_ids[self.target_offsets[index] : self.target_offsets[index + 1]]

    def _map_ids(self, part: str) -> Ids:
        """Looked through once: an id that the vocabulary has not would read or crash somewhere in the model."""
        ids = self._map(part)
        if ids.max() >= self.vocab_size:
            raise self._damage(part, "ids that the vocabulary has not")
        return ids

    def _damage(self, part: str, problem: str) -> DragomanError:
        path = shard_path(self.folder, self.name, part)
        return DragomanError(f"the data folder is damaged: {path} has {problem}", COPY_ANEW)

    def _map(self, part: str) -> NDArray[np.uint16]:
        return np.memmap(shard_path(self.folder, self.name, part), dtype=ID_TYPE, mode="r")

    def __getstate__(self) -> dict[str, Any]:
        """Maps do not travel to another process: it opens its own."""
        return {key: self.__dict__[key] for key in ("folder", "name", "num_pairs", "info", "vocab_size")}


@dataclass(frozen=True)
class EvalSet:
    """A dev or test set: normalised plain text, one sentence a line."""

    name: str
    source_path: Path
    target_path: Path
    num_pairs: int

    def lines(self) -> tuple[list[str], list[str]]:
        sources, targets = read_lines(self.source_path), read_lines(self.target_path)
        if not len(sources) == len(targets) == self.num_pairs:
            raise DragomanError(
                f"the data folder is damaged: {self.name} has {len(sources):,} source and {len(targets):,} target "
                f"sentences, not {self.num_pairs:,}",
                COPY_ANEW,
            )
        return sources, targets


@dataclass(frozen=True)
class ShardSet:
    """A finished data folder."""

    folder: Path
    manifest: Manifest
    shards: list[Shard]

    @property
    def vocab_path(self) -> Path:
        return self.folder / VOCAB_NAME

    def load_vocab(self) -> "Vocab":
        """The vocabulary, of as many pieces as the ids were held against."""
        from dragoman.data.vocab import Vocab  # SentencePiece, which those who only look at a folder do without

        vocab, size = Vocab.load(self.vocab_path), self.manifest.vocab.size
        if vocab.size != size:
            problem = f"{self.vocab_path} has {vocab.size:,} pieces, not {size:,}"
            raise DragomanError(f"the data folder is damaged: {problem}", COPY_ANEW)
        return vocab

    @property
    def dev_sets(self) -> list[EvalSet]:
        return list(_eval_sets(self.folder / "dev", self.manifest.dev))

    @property
    def test_sets(self) -> list[EvalSet]:
        return list(_eval_sets(self.folder / "test", self.manifest.test))


def open_shards(folder: Path) -> ShardSet:
    """Open a data folder after checking its version, place and size of every file, and what is in the small ones."""
    manifest = read_manifest(folder)
    shards = [Shard(folder / "train", info, manifest.vocab.size) for info in manifest.shards]
    data = ShardSet(folder, manifest, shards)
    _require_same(data.vocab_path, manifest.vocab.sha256)
    for info in manifest.shards:
        counts = (info.source_tokens, info.target_tokens, 2 * info.num_pairs)
        for part, count in zip(PARTS, counts, strict=True):
            _require(shard_path(folder / "train", info.name, part), count * ID_TYPE.itemsize)
    for entry, info in zip(data.dev_sets + data.test_sets, manifest.dev + manifest.test, strict=True):
        _require_same(entry.source_path, info.source_sha256)
        _require_same(entry.target_path, info.target_sha256)
    return data


def shard_path(folder: Path, name: str, part: str) -> Path:
    return folder / f"{name}.{part}.bin"


def eval_paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.source.txt", folder / f"{name}.target.txt"


def offsets_of(lengths: NDArray[Any]) -> Offsets:
    """Running sums with a leading zero."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def read_lines(path: Path) -> list[str]:
    """Lines end at LF only: other Unicode line breaks are part of a sentence."""
    try:
        return path.read_bytes().decode().split("\n")[:-1]
    except UnicodeDecodeError:
        raise DragomanError(f"{path} is not UTF-8 text", COPY_ANEW) from None


def write_eval_set(folder: Path, name: str, sources: list[str], targets: list[str]) -> EvalInfo:
    """Write both sides and describe them."""
    folder.mkdir(parents=True, exist_ok=True)
    hashes: list[str] = []
    for path, lines in zip(eval_paths(folder, name), (sources, targets), strict=True):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        hashes.append(file_sha256(path))
    return EvalInfo(name=name, num_pairs=len(sources), source_sha256=hashes[0], target_sha256=hashes[1])


def _eval_sets(folder: Path, entries: list[EvalInfo]) -> Iterator[EvalSet]:
    for entry in entries:
        yield EvalSet(entry.name, *eval_paths(folder, entry.name), entry.num_pairs)


def _require(path: Path, num_bytes: int | None = None) -> None:
    folder, name = path.parent, path.name
    if not is_inside(folder, name):
        raise DragomanError(f"the data folder is damaged: {path} leads out of it", COPY_ANEW)
    if not path.is_file():
        raise DragomanError(f"the data folder is damaged: {path} is missing", COPY_ANEW)
    size = path.stat().st_size
    if num_bytes is not None and size != num_bytes:
        raise DragomanError(f"the data folder is damaged: {path} has {size:,} bytes, not {num_bytes:,}", COPY_ANEW)


def _require_same(path: Path, sha256: str) -> None:
    _require(path)
    if file_sha256(path) != sha256:
        raise DragomanError(f"the data folder is damaged: {path} has other bytes than were written", COPY_ANEW)
