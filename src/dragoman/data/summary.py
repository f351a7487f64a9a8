"""The manifest out of the reports that chunks and parts left behind.

Adds up; reads no text.
"""

import platform
from importlib.metadata import version
from pathlib import Path

from dragoman import __version__
from dragoman.data.assembly import Assembly
from dragoman.data.chunk import ChunkReport, merge_rejects
from dragoman.data.corpus import Corpus
from dragoman.data.manifest import (
    CorpusStats,
    EvalInfo,
    InputFile,
    Manifest,
    Settings,
    VocabInfo,
    content_fingerprint,
)
from dragoman.data.part import PartReport
from dragoman.data.placeholders import SYMBOLS
from dragoman.data.request import Request
from dragoman.data.vocab import Vocab
from dragoman.errors import DragomanError
from dragoman.hashing import file_sha256


def check_not_empty(chunks: list[ChunkReport], parts: list[PartReport] | None) -> None:
    """Refuse a corpus of which nothing is left, and say where it went."""
    num_left = sum(chunk.num_pairs for chunk in chunks) if parts is None else sum(part.num_pairs for part in parts)
    if num_left:
        return
    rejects = [chunk.rejected for chunk in chunks]
    rejects += [corpus.rejected for part in parts or [] for corpus in part.corpora]
    reasons = ", ".join(f"{entry.num_pairs:,} {name}" for name, entry in merge_rejects(rejects).items())
    num_lines = sum(chunk.raw_lines for chunk in chunks)
    raise DragomanError(
        f"no training pair is left of {num_lines:,} lines ({reasons or 'the corpus is empty'})",
        "check languages and files, or change data.filters in the recipe",
    )


def corpus_stats(
    request: Request, corpora: list[Corpus], chunks: list[ChunkReport], parts: list[PartReport]
) -> list[CorpusStats]:
    return [_corpus_stats(corpus, index, chunks, parts) for index, corpus in enumerate(corpora)]


def vocab_info(path: Path, origin: Path | None, sample_lines: int) -> VocabInfo:
    vocab = Vocab.load(path)
    return VocabInfo(
        size=vocab.size,
        sha256=file_sha256(path),
        origin=str(origin) if origin else "learned",
        sample_lines=sample_lines,
        placeholders=list(SYMBOLS),
    )


def build_manifest(
    request: Request,
    plan: str,
    stats: list[CorpusStats],
    parts: list[PartReport],
    assembly: Assembly,
    vocab: VocabInfo,
    evals: dict[str, list[EvalInfo]],
    seconds: dict[str, float],
) -> Manifest:
    everything = [*evals["dev"], *evals["test"]]
    return Manifest(
        schema=1,
        languages=request.languages,
        fingerprint=content_fingerprint(request.languages, vocab, assembly.shards, everything),
        plan=plan,
        num_train_pairs=sum(part.num_pairs for part in parts),
        source_tokens=sum(part.source_tokens for part in parts),
        target_tokens=sum(part.target_tokens for part in parts),
        placeholder_pairs=sum(part.placeholder_pairs for part in parts),
        source_lengths=assembly.source_lengths,
        target_lengths=assembly.target_lengths,
        corpora=stats,
        shards=assembly.shards,
        vocab=vocab,
        dev=evals["dev"],
        test=evals["test"],
        settings=Settings(data=request.data, vocab=request.vocab, skip_invalid=request.skip_invalid),
        versions={
            "dragoman": __version__,
            "python": platform.python_version(),
            "sentencepiece": version("sentencepiece"),
            "numpy": version("numpy"),
        },
        seconds=seconds,
        notes=_notes(request, stats, evals),
    )


def _corpus_stats(corpus: Corpus, index: int, chunks: list[ChunkReport], parts: list[PartReport]) -> CorpusStats:
    own_chunks = [chunk for chunk in chunks if chunk.corpus == index]
    own_parts = [part.corpora[index] for part in parts]
    files = [
        InputFile(path=str(path), num_bytes=path.stat().st_size, sha256=file_sha256(path)) for path in corpus.files
    ]
    return CorpusStats(
        name=corpus.name,
        weight=corpus.weight,
        files=files,
        raw_lines=sum(chunk.raw_lines for chunk in own_chunks),
        raw_source_bytes=sum(chunk.raw_source_bytes for chunk in own_chunks),
        raw_target_bytes=sum(chunk.raw_target_bytes for chunk in own_chunks),
        clean_lines=sum(part.clean_lines for part in own_parts),
        clean_source_bytes=sum(part.clean_source_bytes for part in own_parts),
        clean_target_bytes=sum(part.clean_target_bytes for part in own_parts),
        train_pairs=sum(part.train_pairs for part in own_parts),
        bpe_source_bytes=sum(part.bpe_source_bytes for part in own_parts),
        bpe_target_bytes=sum(part.bpe_target_bytes for part in own_parts),
        source_tokens=sum(part.source_tokens for part in own_parts),
        target_tokens=sum(part.target_tokens for part in own_parts),
        rejected=merge_rejects([entry.rejected for entry in (*own_chunks, *own_parts)]),
    )


def _notes(request: Request, stats: list[CorpusStats], evals: dict[str, list[EvalInfo]]) -> list[str]:
    notes: list[str] = []
    for split, entries in evals.items():
        for entry in entries:
            if entry.name == "held-out":
                fewer = ""
                if entry.num_pairs < request.data.held_out_pairs:
                    fewer = f", fewer than {request.data.held_out_pairs:,} because the corpus is small"
                notes.append(f"held {entry.num_pairs:,} pairs out of the training text as {split} set{fewer}")
    expected, found = request.data.expected_pairs, sum(entry.clean_lines for entry in stats)
    if expected and found != expected:
        notes.append(f"warning: cleaning left {found:,} pairs, the recipe expects {expected:,}")
    skipped = sum(entry.rejected["invalid"].num_pairs for entry in stats if "invalid" in entry.rejected)
    if skipped:
        notes.append(f"skipped {skipped:,} invalid lines")
    return notes
