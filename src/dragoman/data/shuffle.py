"""The out-of-core shuffle: every pair gets a 64-bit key from its own text, and the training order is key order.

Equal pairs have equal keys, so that sorting finds duplicates too. Cleaned chunks lie sorted on disk; any range of
keys can be merged from all of them within bounded memory. The order depends on text and seed alone: not on the
number of workers, nor on how the text was cut into chunks.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Orders = NDArray[np.uint64]

# A bucket is a range of keys, fine enough that a task can be made of whole buckets at any corpus size.
NUM_BUCKETS = 4096
_BUCKET_SHIFT = np.uint64(64 - 12)
_HEADER_BYTES = (NUM_BUCKETS + 1) * 3 * 8

# An order says where a pair came from, and ties between equal pairs go to the lowest: copy, corpus, line.
_COPY_SHIFT, _CORPUS_SHIFT = np.uint64(56), np.uint64(40)
_CORPUS_MASK, _LINE_MASK = np.uint64(0xFFFF), np.uint64((1 << 40) - 1)
MAX_COPIES = 256

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Pairs:
    """Pairs in key order."""

    keys: Keys
    orders: Orders
    sources: list[str]
    targets: list[str]

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, indices: NDArray[np.int64]) -> "Pairs":
        picked: list[int] = indices.tolist()
        sources = [self.sources[index] for index in picked]
        targets = [self.targets[index] for index in picked]
        return Pairs(self.keys[indices], self.orders[indices], sources, targets)

    @property
    def corpora(self) -> NDArray[np.int64]:
        return ((self.orders >> _CORPUS_SHIFT) & _CORPUS_MASK).astype(np.int64)

    @property
    def lines(self) -> NDArray[np.int64]:
        return (self.orders & _LINE_MASK).astype(np.int64)

    @property
    def is_first_copy(self) -> NDArray[np.bool_]:
        """A corpus of weight 3 brings three copies of a pair; statistics count the first."""
        return (self.orders >> _COPY_SHIFT) == 0


def text_keys(sources: Sequence[str], targets: Sequence[str], seed: int) -> Keys:
    person = struct.pack("<q", seed)
    digests = [
        blake2b(f"{source}\n{target}".encode(), digest_size=8, person=person).digest()
        for source, target in zip(sources, targets, strict=True)
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def orders_of(corpus: int, lines: NDArray[np.int64]) -> Orders:
    return lines.astype(np.uint64) | (np.uint64(corpus) << _CORPUS_SHIFT)


def mix(values: Keys, salt: int) -> Keys:
    """SplitMix64: independent pseudo-random bits from a key and a salt."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(salt + 1) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(keys: Keys, salt: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each key."""
    return (mix(keys, salt) >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def with_copies(pairs: Pairs, weight: float) -> tuple[Pairs, Pairs]:
    """Weighted pairs, and those a weight below one leaves out.

    Weight 2.5: every pair twice and every second one, chosen by its key, a third time.
    """
    if weight == 1:
        return pairs, pairs.select(np.zeros(0, dtype=np.int64))
    is_extra = uniform(pairs.keys, salt=1) < weight % 1
    parts: list[Pairs] = []
    for copy in range(int(np.ceil(weight))):
        picked = pairs.select(np.flatnonzero(is_extra)) if copy >= int(weight) else pairs
        keys = mix(picked.keys, salt=16 + copy) if copy else picked.keys
        orders = picked.orders | (np.uint64(copy) << _COPY_SHIFT)
        parts.append(Pairs(keys, orders, picked.sources, picked.targets))
    unsampled = np.flatnonzero(~is_extra & (weight < 1))
    return concatenate(parts), pairs.select(unsampled)


def spread_duplicates(pairs: Pairs) -> Pairs:
    """Keys that differ for equal pairs too: so corpora keep their duplicates, and keep them apart."""
    return Pairs(mix(pairs.keys ^ mix(pairs.orders, salt=2), salt=3), pairs.orders, pairs.sources, pairs.targets)


def sort_pairs(pairs: Pairs) -> Pairs:
    return pairs.select(np.lexsort((pairs.orders, pairs.keys)))


def find_duplicates(keys: Keys) -> NDArray[np.bool_]:
    """Marks all but the first of each run of equal keys; keys are sorted."""
    is_duplicate = np.zeros(len(keys), dtype=bool)
    is_duplicate[1:] = keys[1:] == keys[:-1]
    return is_duplicate


def split_pairs(pairs: Pairs, is_dropped: NDArray[np.bool_]) -> tuple[Pairs, Pairs]:
    """Kept and dropped pairs; where nothing is dropped, nothing is copied."""
    dropped = pairs.select(np.flatnonzero(is_dropped))
    return (pairs.select(np.flatnonzero(~is_dropped)) if len(dropped) else pairs), dropped


def write_chunk(pairs: Pairs, path: Path) -> None:
    """Header of bucket offsets (pair, source byte, target byte), keys, orders, source text, target text."""
    sources, targets = _join(pairs.sources), _join(pairs.targets)
    limits = np.arange(NUM_BUCKETS, dtype=np.uint64) << _BUCKET_SHIFT
    first_pairs = np.append(np.searchsorted(pairs.keys, limits), len(pairs))
    columns = [first_pairs, _line_starts(sources)[first_pairs], _line_starts(targets)[first_pairs]]
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(np.stack(columns, axis=1).astype("<i8").tobytes())
        file.write(pairs.keys.astype("<u8").tobytes())
        file.write(pairs.orders.astype("<u8").tobytes())
        file.write(sources)
        file.write(targets)
    part.replace(path)


def read_bucket_bytes(path: Path) -> NDArray[np.int64]:
    """Text bytes, both sides together, of each bucket of a chunk."""
    header = _read_header(path)
    return np.diff(header[:, 1] + header[:, 2])


def read_keys(paths: Sequence[Path], first: int, last: int) -> tuple[Keys, Orders]:
    """Keys and orders of buckets first to last - 1 over all chunks, in key order."""
    parts = [_read_range(path, first, last, with_text=False) for path in paths]
    merged = concatenate(parts)
    by_key = np.lexsort((merged.orders, merged.keys))
    return merged.keys[by_key], merged.orders[by_key]


def read_pairs(paths: Sequence[Path], first: int, last: int) -> Pairs:
    """The pairs of buckets first to last - 1 over all chunks, in key order."""
    return sort_pairs(concatenate([_read_range(path, first, last, with_text=True) for path in paths]))


def cut_buckets(paths: Sequence[Path], max_bytes: int) -> list[tuple[int, int]]:
    """Ranges of buckets whose text stays within `max_bytes`, where a single bucket does."""
    sizes = np.zeros(NUM_BUCKETS, dtype=np.int64)
    for path in paths:
        sizes += read_bucket_bytes(path)
    ranges: list[tuple[int, int]] = []
    first, filled = 0, 0
    for bucket, size in enumerate(sizes.tolist()):
        if filled and filled + size > max_bytes:
            ranges.append((first, bucket))
            first, filled = bucket, 0
        filled += size
    return [*ranges, (first, NUM_BUCKETS)]


def _read_header(path: Path) -> NDArray[np.int64]:
    with path.open("rb") as file:
        return np.frombuffer(file.read(_HEADER_BYTES), dtype="<i8").reshape(NUM_BUCKETS + 1, 3)


def _read_range(path: Path, first: int, last: int, with_text: bool) -> Pairs:
    with path.open("rb") as file:
        header = np.frombuffer(file.read(_HEADER_BYTES), dtype="<i8").reshape(NUM_BUCKETS + 1, 3)
        (pair, source, target), (end, source_end, target_end) = header[first].tolist(), header[last].tolist()
        num_pairs, source_bytes, _ = header[-1].tolist()

        def read(start: int, size: int) -> bytes:
            file.seek(start)
            return file.read(size)

        keys = np.frombuffer(read(_HEADER_BYTES + 8 * pair, 8 * (end - pair)), dtype="<u8")
        orders = np.frombuffer(read(_HEADER_BYTES + 8 * (num_pairs + pair), 8 * (end - pair)), dtype="<u8")
        if not with_text:
            return Pairs(keys, orders, [], [])
        text = _HEADER_BYTES + 16 * num_pairs
        sources = read(text + source, source_end - source).decode().split("\n")[:-1]
        targets = read(text + source_bytes + target, target_end - target).decode().split("\n")[:-1]
    return Pairs(keys, orders, sources, targets)


def concatenate(parts: Sequence[Pairs]) -> Pairs:
    if not parts:
        return Pairs(np.zeros(0, np.uint64), np.zeros(0, np.uint64), [], [])
    return Pairs(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.orders for part in parts]),
        [line for part in parts for line in part.sources],
        [line for part in parts for line in part.targets],
    )


def _join(lines: Sequence[str]) -> bytes:
    return "\n".join([*lines, ""]).encode()


def _line_starts(text: bytes) -> NDArray[np.int64]:
    """Byte offset of every line, and of the end."""
    return np.append(0, np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1)
