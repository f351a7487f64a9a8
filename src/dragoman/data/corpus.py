"""Parallel text on disk: plain, .gz, .xz, .zst or TSV, read in line-aligned chunks of bytes.

Memory stays bounded whatever the files hold. Knows bytes and line ends; the text in them is `clean`'s business.
"""

import gzip
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import zstandard

from dragoman.errors import DragomanError

BLOCK_BYTES = 1 << 20
CHUNK_BYTES = 4 << 20  # of one side
MAX_LINE_BYTES = 1 << 20
INVALID_LINE = b"\xff"  # stands for a line that was skipped while reading: never valid UTF-8

# Typical growth when unpacked, for the estimate of disk space and nothing else.
_GROWTH = {".gz": 3.5, ".xz": 5.0, ".zst": 4.5}
# MemoryError: an archive may claim to need more than there is.
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError, MemoryError)
_PACKED_BYTES = 1 << 12  # zstd unpacks all it is given at once, which may be 30,000 times as much
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Corpus:
    """Two line-aligned files, or one TSV file with two columns."""

    name: str
    source: Path
    target: Path | None  # None: source is a TSV file
    weight: float = 1.0

    @property
    def files(self) -> list[Path]:
        return [self.source] if self.target is None else [self.source, self.target]


@dataclass(frozen=True)
class RawChunk:
    """Whole lines of one corpus. For a TSV file all of it is in `source`."""

    number: int
    first_line: int
    num_lines: int
    source: bytes
    target: bytes


class LineReader:
    """Whole lines out of a stream of blocks; knows how many it has given."""

    def __init__(self, path: Path, skip_invalid: bool) -> None:
        self.path = path
        self.num_lines = 0
        self._blocks = read_blocks(path)
        self._buffer = b""
        self._ends = np.zeros(0, dtype=np.int64)  # positions just behind each newline in the buffer
        self._at_end = False
        self._skip_invalid = skip_invalid
        self._is_first = True

    @property
    def num_available(self) -> int:
        return len(self._ends)

    def fill(self) -> None:
        """Read on until a chunk's worth of bytes is there, or the file ends.

        A chunk is larger than the longest line, so that a full buffer holds at least one.
        """
        while not self._at_end and len(self._buffer) < CHUNK_BYTES:
            parts, size = [self._buffer], len(self._buffer)
            while not self._at_end and size < CHUNK_BYTES:
                parts.append(self._next_block(parts[-1]))
                size += len(parts[-1])
            self._buffer = b"".join(parts)
            self._index_lines()

    def take(self, num_lines: int) -> bytes:
        end = int(self._ends[num_lines - 1]) if num_lines else 0
        taken, self._buffer = self._buffer[:end], self._buffer[end:]
        self._ends = self._ends[num_lines:] - end
        self.num_lines += num_lines
        return taken

    def count_rest(self) -> int:
        """Lines of the whole file, the given ones included."""
        total = self.num_lines
        while self.num_available:
            total += self.num_available
            self.take(self.num_available)
            self.fill()
        return total

    def _next_block(self, before: bytes) -> bytes:
        block = next(self._blocks, b"")
        if self._is_first:
            block = block.removeprefix(_BYTE_ORDER_MARK)
            self._is_first = False
        if not block:
            self._at_end = True
            return b"" if not before or before.endswith(b"\n") else b"\n"
        return block

    def _index_lines(self) -> None:
        self._ends = _line_ends(self._buffer)
        starts = np.concatenate(([0], self._ends))
        widths = np.diff(np.append(starts, len(self._buffer)))
        if widths.max() <= MAX_LINE_BYTES:
            return
        if not self._skip_invalid:
            line = self.num_lines + int(np.argmax(widths > MAX_LINE_BYTES)) + 1
            raise DragomanError(
                f"{self.path} line {line:,} is longer than {MAX_LINE_BYTES:,} bytes",
                "is it one sentence a line? mend the line, or pass --skip-invalid",
            )
        self._blank_long_lines()

    def _blank_long_lines(self) -> None:
        """A line that does not end within the buffer keeps one byte over the limit, so that it is found again."""
        *lines, rest = self._buffer.split(b"\n")
        kept = [line if len(line) < MAX_LINE_BYTES else INVALID_LINE for line in lines]
        self._buffer = b"\n".join([*kept, rest[: MAX_LINE_BYTES + 1]])
        self._ends = _line_ends(self._buffer)


def read_chunks(corpus: Corpus, skip_invalid: bool) -> Iterator[RawChunk]:
    """The corpus from its first line to its last; sides of different length are refused at the end."""
    readers = [LineReader(path, skip_invalid) for path in corpus.files]
    number = 0
    while True:
        for reader in readers:
            reader.fill()
        num_lines = min(reader.num_available for reader in readers)
        if num_lines == 0:
            break
        first_line = readers[0].num_lines + 1
        sides = [reader.take(num_lines) for reader in readers]
        yield RawChunk(number, first_line, num_lines, sides[0], sides[1] if len(sides) == 2 else b"")
        number += 1
    _check_ends(readers)


def read_blocks(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file; a damaged archive is named."""
    try:
        yield from _unpack(path)
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise DragomanError(
            f"{path} is damaged or cut off: {reason}", f"test it with your {path.suffix} tool, fetch it again"
        ) from None


def check_inputs(corpora: list[Corpus]) -> None:
    """Every file exists, can be read and is not empty."""
    for path in (path for corpus in corpora for path in corpus.files):
        if not path.is_file():
            raise DragomanError(f"there is no file {path}", "check the path")
        try:
            with path.open("rb") as file:
                first = file.read(1)
        except PermissionError:
            raise DragomanError(f"{path} cannot be read: permission denied", "check its owner and mode") from None
        if not first:
            raise DragomanError(f"{path} is empty", "give a file with one sentence a line")


def estimate_text_bytes(paths: list[Path]) -> int:
    return int(sum(path.stat().st_size * _GROWTH.get(path.suffix, 1.0) for path in paths))


def _unpack(path: Path) -> Iterator[bytes]:
    if path.suffix == ".zst":
        yield from _unpack_zstd(path)
        return
    openers = {".gz": gzip.open, ".xz": lzma.open}
    opener = cast("Any", openers.get(path.suffix, open))
    with opener(path, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def _unpack_zstd(path: Path) -> Iterator[bytes]:
    """By hand, because the library's reader takes a cut-off frame for the end of the file."""
    frame: Any = None
    with path.open("rb") as file:
        while packed := file.read(_PACKED_BYTES):
            while packed:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                if block := frame.decompress(packed):
                    yield block
                packed = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the last frame does not end")


def _line_ends(buffer: bytes) -> "np.ndarray[Any, np.dtype[np.int64]]":
    return np.flatnonzero(np.frombuffer(buffer, dtype=np.uint8) == ord("\n")) + 1


def _check_ends(readers: list[LineReader]) -> None:
    if not any(reader.num_available for reader in readers):
        return
    counts = [f"{reader.path} has {reader.count_rest():,}" for reader in readers]
    raise DragomanError(
        f"the two sides differ in lines: {', '.join(counts)}",
        "line n of one must be the translation of line n of the other",
    )
