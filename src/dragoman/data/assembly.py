"""Encoded parts joined into shards of near-equal size, hashed while they are written.

Knows ids and files, never text.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.manifest import LengthStats, ShardInfo
from dragoman.data.part import PartReport, part_name
from dragoman.data.shards import ID_TYPE, PARTS, shard_path


@dataclass(frozen=True)
class Assembly:
    shards: list[ShardInfo]
    source_lengths: LengthStats
    target_lengths: LengthStats


def assemble(parts_folder: Path, reports: list[PartReport], shard_pairs: int, folder: Path) -> Assembly:
    """Write the shards. Sizes are near-equal, because a tiny last shard would make a poor block of the batch plan."""
    folder.mkdir(parents=True, exist_ok=True)
    num_pairs = sum(report.num_pairs for report in reports)
    num_shards = -(-num_pairs // shard_pairs)
    limits = [num_pairs * index // num_shards for index in range(num_shards + 1)]
    histograms = np.zeros((2, 1 << 16), dtype=np.int64)
    shards: list[ShardInfo] = []
    for index in range(num_shards):
        slices = list(_overlapping(reports, limits[index], limits[index + 1]))
        name = f"shard-{index:05d}"
        shards.append(_write_shard(parts_folder, slices, folder, name, histograms))
    return Assembly(shards, length_stats(histograms[0]), length_stats(histograms[1]))


def length_stats(histogram: NDArray[np.int64]) -> LengthStats:
    """Quantiles from how often each length occurs."""
    total = int(histogram.sum())
    running = np.cumsum(histogram)

    def quantile(share: float) -> int:
        return int(np.searchsorted(running, max(1, round(share * total))))

    mean = float(histogram @ np.arange(len(histogram))) / max(total, 1)
    return LengthStats(
        mean=round(mean, 2),
        min=quantile(0.0),
        p10=quantile(0.1),
        p50=quantile(0.5),
        p90=quantile(0.9),
        p99=quantile(0.99),
        max=quantile(1.0),
    )


def _overlapping(reports: list[PartReport], start: int, end: int) -> Iterator[tuple[PartReport, int, int]]:
    """(part, first pair, last pair + 1) for each part that has pairs between start and end."""
    position = 0
    for report in reports:
        first, last = max(start - position, 0), min(end - position, report.num_pairs)
        if first < last:
            yield report, first, last
        position += report.num_pairs


def _write_shard(
    parts_folder: Path,
    slices: list[tuple[PartReport, int, int]],
    folder: Path,
    name: str,
    histograms: NDArray[np.int64],
) -> ShardInfo:
    digests = [hashlib.sha256() for _ in PARTS]
    sizes = [0, 0, 0]
    files = [shard_path(folder, name, part).open("wb") for part in PARTS]
    try:
        for report, first, last in slices:
            arrays = _read_slice(parts_folder, report, first, last)
            for side, array in enumerate(arrays):
                data = array.tobytes()
                files[side].write(data)
                digests[side].update(data)
                sizes[side] += array.size
            for side in (0, 1):
                histograms[side] += np.bincount(arrays[2][:, side], minlength=histograms.shape[1])
    finally:
        for file in files:
            file.close()
    hashes = [digest.hexdigest() for digest in digests]
    return ShardInfo(
        name=name,
        num_pairs=sizes[2] // 2,
        source_tokens=sizes[0],
        target_tokens=sizes[1],
        source_sha256=hashes[0],
        target_sha256=hashes[1],
        lengths_sha256=hashes[2],
    )


def _read_slice(parts_folder: Path, report: PartReport, first: int, last: int) -> list[NDArray[Any]]:
    name = part_name(report.number)
    lengths = np.fromfile(shard_path(parts_folder, name, "lengths"), dtype=ID_TYPE).reshape(-1, 2)
    arrays: list[NDArray[Any]] = []
    for side, part in enumerate(PARTS[:2]):
        start = int(lengths[:first, side].sum(dtype=np.int64))
        count = int(lengths[first:last, side].sum(dtype=np.int64))
        path = shard_path(parts_folder, name, part)
        arrays.append(np.fromfile(path, dtype=ID_TYPE, count=count, offset=start * ID_TYPE.itemsize))
    return [*arrays, lengths[first:last]]
