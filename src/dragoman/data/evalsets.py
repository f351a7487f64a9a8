"""Dev and test sets: read from files, or held out of the training text.

Held-out pairs are those of the lowest keys, which is a random sample that the seed decides.
"""

from pathlib import Path

import numpy as np

from dragoman.config import DataConfig
from dragoman.data import clean, shuffle
from dragoman.data.chunk import split_lines
from dragoman.data.corpus import Corpus, check_inputs, read_chunks
from dragoman.data.shuffle import NUM_BUCKETS, Pairs
from dragoman.errors import DragomanError

MAX_HELD_OUT_SHARE = 0.05


def read_eval_set(corpus: Corpus, config: DataConfig) -> tuple[list[str], list[str]]:
    """Normalised lines of both sides. Nothing is filtered: a score must count every sentence."""
    sources: list[str] = []
    targets: list[str] = []
    for raw in read_chunks(corpus, skip_invalid=False):
        source, target, _ = split_lines(raw, corpus, skip_invalid=False)
        sources += clean.normalize_bytes(source, config.normalization).split("\n")
        targets += clean.normalize_bytes(target, config.normalization).split("\n")
    if not sources:
        raise DragomanError(f"the evaluation set {corpus.source} is empty", "give one sentence a line")
    return sources, targets


def read_text_pair(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """Two files to score a model on. A published score is of the reference as it is, so nothing is normalised."""
    corpus = Corpus(name=source.name, source=source, target=target)
    check_inputs([corpus])
    return read_eval_set(corpus, DataConfig.model_validate({"normalization": "none"}))


def hold_out(chunks: list[Path], config: DataConfig, num_sets: int) -> list[Pairs]:
    """`num_sets` sets of distinct pairs: `held_out_pairs` each, fewer where that were over 5 % of the text."""
    enough = int(np.ceil(config.held_out_pairs / MAX_HELD_OUT_SHARE))
    num_distinct = _count_distinct(chunks, enough)
    size = min(config.held_out_pairs, int(num_distinct * MAX_HELD_OUT_SHARE))
    if size == 0:
        raise DragomanError(
            f"the corpus has only {num_distinct} distinct clean pairs, too few to hold a dev set out of",
            "give more text, or your own --dev-source and --dev-target",
        )
    picked = _first_distinct(chunks, num_sets * size)
    size = len(picked) // num_sets  # fewer where duplicates were kept and counted
    return [picked.select(np.arange(size * index, size * (index + 1))) for index in range(num_sets)]


def _count_distinct(chunks: list[Path], enough: int) -> int:
    """Distinct keys among first copies; stops counting where the answer makes no difference any more."""
    total = 0
    for first, last in shuffle.cut_buckets(chunks, max_bytes=1 << 26):
        keys, orders = shuffle.read_keys(chunks, first, last)
        is_first_copy = Pairs(keys, orders, [], []).is_first_copy
        total += len(np.unique(keys[is_first_copy]))
        if total >= enough:
            break
    return total


def _first_distinct(chunks: list[Path], count: int) -> Pairs:
    """The lowest keys whose text differs, from as few buckets as hold them."""
    last = 1
    while True:
        pairs = shuffle.read_pairs(chunks, 0, last)
        seen: set[tuple[str, str]] = set()
        indices: list[int] = []
        for index in np.flatnonzero(pairs.is_first_copy).tolist():
            text = (pairs.sources[index], pairs.targets[index])
            if text not in seen:
                seen.add(text)
                indices.append(index)
        if len(indices) >= count or last == NUM_BUCKETS:
            return pairs.select(np.array(indices[:count], dtype=np.int64))
        last = min(NUM_BUCKETS, 2 * last)
