"""One chunk of raw text: checked, normalised, filtered, keyed, sorted and written. A worker's task.

Ties `clean` and `shuffle` together; the report beside each chunk says what happened to its lines.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.config import DataConfig
from dragoman.data import clean, shuffle
from dragoman.data.corpus import Corpus, RawChunk
from dragoman.data.manifest import Example, Record, Rejects, write_atomically
from dragoman.data.shuffle import Pairs
from dragoman.errors import DragomanError

MAX_EXAMPLES = 3
_EXAMPLE_CHARS = 120


class ChunkReport(Record):
    """What a chunk held before cleaning and what was rejected; its file name says where the rest is."""

    corpus: int
    number: int
    raw_lines: int
    raw_source_bytes: int
    raw_target_bytes: int
    num_pairs: int
    rejected: dict[str, Rejects]


@dataclass(frozen=True)
class ChunkTask:
    """Everything a worker needs to clean a chunk."""

    raw: RawChunk
    corpus: Corpus
    corpus_index: int
    languages: tuple[str, str]
    config: DataConfig
    skip_invalid: bool
    folder: Path

    @property
    def path(self) -> Path:
        return chunk_path(self.folder, self.corpus_index, self.raw.number)


def chunk_path(folder: Path, corpus_index: int, number: int) -> Path:
    return folder / f"corpus-{corpus_index:03d}-chunk-{number:06d}.bin"


def report_path(path: Path) -> Path:
    return path.with_suffix(".json")


def clean_chunk(task: ChunkTask) -> ChunkReport:
    """Clean it and write it; the report is written last, so that its presence means done."""
    sources, targets, invalid = _split_sides(task)
    form = task.config.normalization
    sides = clean.Sides(
        clean.measure(clean.normalize_bytes(sources, form), task.languages[0]),
        clean.measure(clean.normalize_bytes(targets, form), task.languages[1]),
        task.languages,
    )
    rejected = _reject(sides, task.config, invalid)
    pairs, duplicates, unsampled = _key_pairs(sides, rejected, task)
    rejects = {name: _describe_lines(sides, indices, task.raw.first_line) for name, indices in rejected.items()}
    rejects |= {"duplicate": describe_pairs(duplicates), "weight": describe_pairs(unsampled)}
    shuffle.write_chunk(pairs, task.path)
    report = ChunkReport(
        corpus=task.corpus_index,
        number=task.raw.number,
        raw_lines=task.raw.num_lines,
        raw_source_bytes=len(sources) if task.corpus.target is None else len(task.raw.source),
        raw_target_bytes=len(targets) if task.corpus.target is None else len(task.raw.target),
        num_pairs=len(pairs),
        rejected={name: entry for name, entry in rejects.items() if entry.num_pairs},
    )
    write_atomically(report_path(task.path), report.model_dump_json().encode())
    return report


def describe_pairs(pairs: Pairs) -> Rejects:
    """Count first copies only: a rejected pair was one pair, whatever its weight."""
    first = pairs.select(np.flatnonzero(pairs.is_first_copy))
    shown: list[int] = np.argsort(first.lines, kind="stable")[:MAX_EXAMPLES].tolist()
    lines = first.lines.tolist()
    return Rejects(
        num_pairs=len(first),
        examples=[_example(lines[index], first.sources[index], first.targets[index]) for index in shown],
    )


def merge_rejects(reports: Iterable[dict[str, Rejects]]) -> dict[str, Rejects]:
    """Sums, with the examples of the lowest lines."""
    merged: dict[str, Rejects] = {}
    for report in reports:
        for name, entry in report.items():
            before = merged.get(name, Rejects(num_pairs=0, examples=[]))
            examples = sorted(before.examples + entry.examples, key=lambda example: example.line)
            merged[name] = Rejects(num_pairs=before.num_pairs + entry.num_pairs, examples=examples[:MAX_EXAMPLES])
    return merged


def split_lines(raw: RawChunk, corpus: Corpus, skip_invalid: bool) -> tuple[bytes, bytes, set[int]]:
    """Both sides as valid UTF-8 and the indices of lines that were not; without `skip_invalid` those are refused."""
    problems: dict[int, str] = {}
    sides = [raw.source] if corpus.target is None else [raw.source, raw.target]
    for path, data in zip(corpus.files, sides, strict=True):
        found = clean.invalid_lines(data)
        _refuse(found, path, raw, skip_invalid)
        problems |= found
    if corpus.target is not None:
        return _blank(raw.source, problems), _blank(raw.target, problems), set(problems)
    rows = [line.split(b"\t") for line in _blank(raw.source, problems).removesuffix(b"\n").split(b"\n")]
    columns = {
        index: f"has {len(row)} columns, not two"
        for index, row in enumerate(rows)
        if len(row) != 2 and index not in problems
    }
    _refuse(columns, corpus.source, raw, skip_invalid)
    problems |= columns
    rows = [[b"", b""] if index in problems else row for index, row in enumerate(rows)] if problems else rows
    source, target = (b"".join([row[side] + b"\n" for row in rows]) for side in (0, 1))
    return source, target, set(problems)


def _split_sides(task: ChunkTask) -> tuple[bytes, bytes, set[int]]:
    return split_lines(task.raw, task.corpus, task.skip_invalid)


def _refuse(problems: dict[int, str], path: Path, raw: RawChunk, skip_invalid: bool) -> None:
    if problems and not skip_invalid:
        index = min(problems)
        raise DragomanError(
            f"{path} line {raw.first_line + index:,} {problems[index]}",
            "mend the line, or pass --skip-invalid to count such lines and go on",
        )


def _blank(data: bytes, problems: dict[int, str]) -> bytes:
    """The lines that cannot be used become empty, so that the others keep their numbers."""
    if not problems:
        return data
    return b"\n".join(b"" if index in problems else line for index, line in enumerate(data.split(b"\n")))


def _reject(sides: clean.Sides, config: DataConfig, invalid: set[int]) -> dict[str, NDArray[np.int64]]:
    rejected = clean.reject(sides, config)
    if not invalid:
        return rejected
    skipped = np.array(sorted(invalid), dtype=np.int64)
    return {"invalid": skipped} | {name: np.setdiff1d(found, skipped) for name, found in rejected.items()}


def _key_pairs(
    sides: clean.Sides, rejected: dict[str, NDArray[np.int64]], task: ChunkTask
) -> tuple[Pairs, Pairs, Pairs]:
    """Sorted pairs to keep; duplicates within the chunk; pairs that a weight below one leaves out."""
    is_kept = np.ones(len(sides.source.lines), dtype=bool)
    for indices in rejected.values():
        is_kept[indices] = False
    orders = shuffle.orders_of(task.corpus_index, np.flatnonzero(is_kept) + task.raw.first_line)
    sources = list(compress(sides.source.lines, is_kept.tolist()))
    targets = list(compress(sides.target.lines, is_kept.tolist()))
    pairs = Pairs(shuffle.text_keys(sources, targets, task.config.seed), orders, sources, targets)
    if not task.config.deduplicate:
        pairs = shuffle.spread_duplicates(pairs)
    weighted, unsampled = shuffle.with_copies(pairs, task.corpus.weight)
    weighted = shuffle.sort_pairs(weighted)
    # Here already, so that a pair repeated a million times never meets itself in one bucket.
    kept, duplicates = shuffle.split_pairs(weighted, shuffle.find_duplicates(weighted.keys))
    return kept, duplicates, unsampled


def _describe_lines(sides: clean.Sides, indices: NDArray[np.int64], first_line: int) -> Rejects:
    shown: list[int] = indices[:MAX_EXAMPLES].tolist()
    examples = [_example(first_line + index, sides.source.lines[index], sides.target.lines[index]) for index in shown]
    return Rejects(num_pairs=len(indices), examples=examples)


def _example(line: int, source: str, target: str) -> Example:
    return Example(line=line, source=source[:_EXAMPLE_CHARS], target=target[:_EXAMPLE_CHARS])
