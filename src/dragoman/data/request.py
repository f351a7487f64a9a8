"""What `prepare` was asked for, and its fingerprint: equal requests on equal text are the same work.

Knows inputs and settings; doing the work is `prepare`'s business.
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dragoman import __version__
from dragoman.config import DataConfig, VocabConfig
from dragoman.data import catalog
from dragoman.data.catalog import Named
from dragoman.data.corpus import Corpus, check_inputs
from dragoman.data.manifest import SCHEMA
from dragoman.data.shuffle import MAX_COPIES
from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256


@dataclass(frozen=True)
class Request:
    """Inputs and settings of one data folder."""

    out: Path
    languages: str
    corpora: tuple[Corpus | Named, ...]
    dev: tuple[Corpus | Named, ...]
    test: tuple[Corpus | Named, ...]
    data: DataConfig
    vocab: VocabConfig
    vocab_path: Path | None = None
    skip_invalid: bool = False
    num_workers: int | None = None

    @property
    def language_pair(self) -> tuple[str, str]:
        source, target = self.languages.split("-")
        return source, target


def check_request(request: Request) -> None:
    """Everything that can be known to be wrong before any work is done."""
    if not re.fullmatch(r"[a-z]{2,3}(_[A-Za-z]+)?-[a-z]{2,3}(_[A-Za-z]+)?", request.languages):
        raise DragomanError(f"--languages {request.languages!r} is not a pair such as en-de", "for example en-de")
    if not request.corpora:
        raise DragomanError("no training text is named", "give --source and --target, --tsv, or --corpus phrasebook")
    for entry in request.corpora:
        if not 0 < entry.weight < MAX_COPIES:
            raise DragomanError(
                f"the weight {entry.weight:g} of {entry.name} is not between 0 and {MAX_COPIES}", "1 is every pair once"
            )
    everything = (*request.corpora, *request.dev, *request.test)
    check_inputs([entry for entry in everything if isinstance(entry, Corpus)])
    for entry in request.corpora:
        if isinstance(entry, Named):
            catalog.check_training_name(entry.name, request.languages)
    for entry in (*request.dev, *request.test):
        if isinstance(entry, Named):
            catalog.check_eval_name(entry.name, request.languages)
    if request.vocab_path is not None and not request.vocab_path.is_file():
        raise DragomanError(f"there is no vocabulary {request.vocab_path}", "name a SentencePiece .model file")


def plan_fingerprint(request: Request) -> str:
    """sha256 over everything that decides the result: text by its content, wherever it lies."""
    vocab_hash = file_sha256(request.vocab_path) if request.vocab_path else None
    facts = {
        "schema": SCHEMA,
        "version": __version__,
        "languages": request.languages,
        "corpora": _identities(request.corpora),
        "dev": _identities(request.dev),
        "test": _identities(request.test),
        "data": request.data.model_dump(exclude={"corpora", "dev", "test", "languages"}),
        "vocab": vocab_hash or request.vocab.model_dump(),
        "placeholder_share": request.vocab.placeholder_share,
        "skip_invalid": request.skip_invalid,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _identities(entries: Sequence[Corpus | Named]) -> list[list[str | float]]:
    """Threads, because hashing releases the interpreter and files may be large."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(_identity, entries))


def _identity(entry: Corpus | Named) -> list[str | float]:
    if isinstance(entry, Named):
        return [entry.weight, catalog.identity(entry.name)]
    return [entry.weight, entry.name, *(file_sha256(path) for path in entry.files)]
