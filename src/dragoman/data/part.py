"""One part of the training data: a range of keys, deduplicated, masked and encoded. A worker's task.

Also what else is read in key order: the sample the vocabulary is learned from. Ties `shuffle` and `encoding` together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.config import VocabConfig
from dragoman.data import encoding, shuffle
from dragoman.data.chunk import describe_pairs
from dragoman.data.encoding import LineEncoder, MaskRates
from dragoman.data.manifest import Record, Rejects, write_atomically
from dragoman.data.shards import ID_TYPE, MAX_LENGTH, PARTS, read_lines, shard_path
from dragoman.data.shuffle import Pairs
from dragoman.data.vocab import Vocab, learn_vocab

RATE_SAMPLE_PAIRS = 5_000
MAX_SAMPLE_BYTES = 160_000_000  # SentencePiece's trainer takes about four times as much memory


@dataclass(frozen=True)
class CleanText:
    """Cleaned chunks on disk, and what must not be learned from."""

    chunks: tuple[Path, ...]
    forbidden: Path | None  # lines of dev and test sets; None: nothing to remove


@dataclass(frozen=True)
class PartTask:
    """A range of buckets to encode."""

    text: CleanText
    number: int
    buckets: tuple[int, int]
    num_corpora: int
    vocab_path: Path
    rates: MaskRates | None
    folder: Path


class CorpusCounts(Record):
    """A part's share of a corpus; the meanings are those of `CorpusStats`."""

    clean_lines: int
    clean_source_bytes: int
    clean_target_bytes: int
    train_pairs: int
    bpe_source_bytes: int
    bpe_target_bytes: int
    source_tokens: int
    target_tokens: int
    rejected: dict[str, Rejects]


class PartReport(Record):
    number: int
    num_pairs: int
    source_tokens: int
    target_tokens: int
    placeholder_pairs: int
    corpora: list[CorpusCounts]


@dataclass(frozen=True)
class LearnTask:
    """A vocabulary to learn from the first pairs in key order, which are a random sample."""

    text: CleanText
    ranges: tuple[tuple[int, int], ...]
    config: VocabConfig


@dataclass(frozen=True)
class Learned:
    model: bytes
    num_lines: int


def part_name(number: int) -> str:
    return f"part-{number:05d}"


def read_training_pairs(text: CleanText, buckets: tuple[int, int]) -> tuple[Pairs, dict[str, Pairs]]:
    """Pairs to train on, in order, and the dropped ones by reason."""
    pairs = shuffle.read_pairs(text.chunks, *buckets)
    dropped: dict[str, Pairs] = {}
    pairs, dropped["duplicate"] = shuffle.split_pairs(pairs, shuffle.find_duplicates(pairs.keys))
    if text.forbidden:
        is_forbidden = _find_lines(pairs, _read_forbidden(text.forbidden))
        pairs, dropped["in_dev_or_test"] = shuffle.split_pairs(pairs, is_forbidden)
    return pairs, dropped


def learn_from_sample(task: LearnTask) -> Learned:
    """Reads range by range, so that only the trainer itself holds the whole sample."""
    num_lines = 0

    def sample() -> Iterator[str]:
        nonlocal num_lines
        num_bytes = 0
        for buckets in task.ranges:
            pairs, _ = read_training_pairs(task.text, buckets)
            for source, target in zip(pairs.sources, pairs.targets, strict=True):
                num_bytes += len(source.encode()) + len(target.encode())
                if num_lines + 2 > task.config.sample_lines or num_bytes > MAX_SAMPLE_BYTES:
                    return
                num_lines += 2
                yield source
                yield target

    return Learned(learn_vocab(sample(), task.config), num_lines)


def sample_mask_rates(text: CleanText, ranges: list[tuple[int, int]], share: float) -> MaskRates | None:
    """From the first pairs in key order, however these are cut into ranges."""
    batches: list[Pairs] = []
    missing = RATE_SAMPLE_PAIRS
    for buckets in ranges:
        pairs, _ = read_training_pairs(text, buckets)
        batches.append(pairs.select(np.arange(min(len(pairs), missing))))
        missing -= len(batches[-1])
        if not missing:
            break
    return encoding.measure_mask_rates(shuffle.concatenate(batches), share)


def encode_part(task: PartTask) -> PartReport:
    """Encode it and write it; the report is written last, so that its presence means done."""
    pairs, dropped = read_training_pairs(task.text, task.buckets)
    clean_bytes = [_line_bytes(lines) for lines in (pairs.sources, pairs.targets)]
    is_masked = encoding.put_placeholders(pairs, task.rates)
    encoder = _load_encoder(task.vocab_path)
    source_ids, source_lengths = encoder.encode(pairs.sources)
    target_ids, target_lengths = encoder.encode(pairs.targets)
    lengths = np.stack([source_lengths, target_lengths], axis=1)
    bpe_bytes = [
        encoding.line_sums(encoder.piece_bytes[ids], sizes) + sizes - 1
        for ids, sizes in ((source_ids, source_lengths), (target_ids, target_lengths))
    ]
    fits = lengths.max(axis=1, initial=0) <= MAX_LENGTH
    if not fits.all():
        dropped["too_many_pieces"] = pairs.select(np.flatnonzero(~fits))
        source_ids, target_ids = (
            source_ids[np.repeat(fits, source_lengths)],
            target_ids[np.repeat(fits, target_lengths)],
        )
    _write_ids(task, source_ids, target_ids, lengths[fits])
    table = np.column_stack([clean_bytes[0], clean_bytes[1], bpe_bytes[0], bpe_bytes[1], lengths])
    counts = _count_by_corpus(pairs, fits, table, dropped, task.num_corpora)
    report = PartReport(
        number=task.number,
        num_pairs=int(fits.sum()),
        source_tokens=len(source_ids),
        target_tokens=len(target_ids),
        placeholder_pairs=int((is_masked & fits).sum()),
        corpora=counts,
    )
    write_atomically(task.folder / f"{part_name(task.number)}.json", report.model_dump_json().encode())
    return report


def _count_by_corpus(
    pairs: Pairs,
    fits: NDArray[np.bool_],
    table: NDArray[np.int64],
    dropped: dict[str, Pairs],
    num_corpora: int,
) -> list[CorpusCounts]:
    """`table` columns: clean bytes, BPE bytes, tokens, each for source and target."""
    counts: list[CorpusCounts] = []
    corpora = pairs.corpora
    for corpus in range(num_corpora):
        is_trained = (corpora == corpus) & fits
        first_copies = is_trained & pairs.is_first_copy
        clean_bytes = table[first_copies].sum(axis=0)[:2].tolist()
        bpe_and_tokens = table[is_trained].sum(axis=0)[2:].tolist()
        rejected = {
            name: describe_pairs(entries.select(np.flatnonzero(entries.corpora == corpus)))
            for name, entries in dropped.items()
        }
        counts.append(
            CorpusCounts(
                clean_lines=int(first_copies.sum()),
                clean_source_bytes=clean_bytes[0],
                clean_target_bytes=clean_bytes[1],
                train_pairs=int(is_trained.sum()),
                bpe_source_bytes=bpe_and_tokens[0],
                bpe_target_bytes=bpe_and_tokens[1],
                source_tokens=bpe_and_tokens[2],
                target_tokens=bpe_and_tokens[3],
                rejected={name: entry for name, entry in rejected.items() if entry.num_pairs},
            )
        )
    return counts


def _write_ids(task: PartTask, source_ids: encoding.Ids, target_ids: encoding.Ids, lengths: NDArray[np.int64]) -> None:
    arrays = (source_ids, target_ids, lengths)
    for name, array in zip(PARTS, arrays, strict=True):
        array.astype(ID_TYPE).tofile(shard_path(task.folder, part_name(task.number), name))


def _find_lines(pairs: Pairs, lines: tuple[frozenset[str], frozenset[str]]) -> NDArray[np.bool_]:
    sources, targets = lines
    num_pairs = len(pairs)
    in_sources = np.fromiter(map(sources.__contains__, pairs.sources), dtype=bool, count=num_pairs)
    in_targets = np.fromiter(map(targets.__contains__, pairs.targets), dtype=bool, count=num_pairs)
    return in_sources | in_targets


def _line_bytes(lines: list[str]) -> NDArray[np.int64]:
    """Bytes of each line with its newline."""
    text = "\n".join([*lines, ""]).encode()
    return np.diff(np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")), prepend=-1)


@lru_cache(maxsize=1)
def _load_encoder(path: Path) -> LineEncoder:
    return LineEncoder(Vocab.load(path))


@lru_cache(maxsize=1)
def _read_forbidden(folder: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Sources and targets of every dev and test set under the folder."""
    sides: list[frozenset[str]] = []
    for side in ("source", "target"):
        files = sorted(folder.glob(f"*/*.{side}.txt"))
        sides.append(frozenset(line for path in files for line in read_lines(path)))
    return sides[0], sides[1]
