"""Text to training data, stage by stage: clean, set apart, learn the vocabulary, encode, assemble.

Each stage leaves finished pieces in the work folder, so that an interrupted one goes on. Decides the order of the
work; how each piece is done is in the other files.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.data import catalog, evalsets, shuffle, summary
from dragoman.data.assembly import assemble
from dragoman.data.catalog import Named
from dragoman.data.chunk import ChunkReport, ChunkTask, chunk_path, clean_chunk, report_path
from dragoman.data.corpus import Corpus, check_inputs, estimate_text_bytes, read_chunks
from dragoman.data.download import Progress
from dragoman.data.encoding import MaskRates
from dragoman.data.manifest import EvalInfo, Manifest, write_atomically, write_manifest
from dragoman.data.part import (
    CleanText,
    LearnTask,
    PartReport,
    PartTask,
    encode_part,
    learn_from_sample,
    part_name,
    sample_mask_rates,
)
from dragoman.data.request import Request, check_request, plan_fingerprint
from dragoman.data.shards import VOCAB_NAME, write_eval_set
from dragoman.data.vocab import adopt_vocab
from dragoman.data.workers import Workers, start_workers
from dragoman.data.workfolder import WorkFolder, check_room, find_finished, open_work, read_record

PART_BYTES = 16 << 20  # of text, both sides, that a worker holds at once
# Below this a second process costs more than it wins.
_SMALL_TEXT_BYTES = 8 << 20
_SPARE_BYTES = 64 << 20
_MAX_WORKERS = 16  # one process reads for all of them and cannot feed more


@dataclass(frozen=True)
class Prepared:
    manifest: Manifest
    is_new: bool  # False: the folder was finished before


def prepare(request: Request, progress: Progress) -> Prepared:
    """Fill the data folder, or find it filled."""
    check_request(request)
    plan = plan_fingerprint(request)
    finished = find_finished(request.out, plan)
    if finished:
        return Prepared(finished, is_new=False)
    with open_work(request.out, plan) as work:
        corpora = _fetch_corpora(request, work, progress)
        num_workers = _check_size(request, corpora, work)
        with start_workers(num_workers) as workers:
            manifest = _run_stages(request, plan, corpora, work, workers, progress)
        _publish(work, manifest)
    return Prepared(manifest, is_new=True)


def _run_stages(
    request: Request, plan: str, corpora: list[Corpus], work: WorkFolder, workers: Workers, progress: Progress
) -> Manifest:
    with work.timed("clean"):
        chunk_reports = _clean(request, corpora, work, workers, progress)
    chunks = [chunk_path(work.chunks, report.corpus, report.number) for report in chunk_reports]
    with work.timed("set_apart"):
        evals = _set_apart(request, chunks, work)
    must_forbid = request.data.remove_overlap or not request.dev
    text = CleanText(tuple(chunks), work.evals if must_forbid else None)
    ranges = shuffle.cut_buckets(chunks, PART_BYTES)
    with work.timed("learn_vocab"):
        sample_lines = _learn(request, text, ranges, work, workers, progress)
    with work.timed("encode"):
        rates = sample_mask_rates(text, ranges, request.vocab.placeholder_share)
        part_reports = _encode(text, ranges, rates, len(corpora), work, workers, progress)
    summary.check_not_empty(chunk_reports, part_reports)
    with work.timed("assemble"):
        shards = assemble(work.parts, part_reports, request.data.shard_pairs, work.train)
    stats = summary.corpus_stats(request, corpora, chunk_reports, part_reports)
    vocab = summary.vocab_info(work.vocab, request.vocab_path, sample_lines)
    return summary.build_manifest(request, plan, stats, part_reports, shards, vocab, evals, work.seconds())


def _fetch_corpora(request: Request, work: WorkFolder, progress: Progress) -> list[Corpus]:
    with work.timed("fetch"):
        found: list[Corpus] = []
        for entry in request.corpora:
            if isinstance(entry, Corpus):
                found.append(entry)
            else:
                found += catalog.fetch_training(entry, request.languages, work.inputs, progress)
        check_inputs(found)
        return found


def _check_size(request: Request, corpora: list[Corpus], work: WorkFolder) -> int:
    """Refuse early what the disk cannot hold; decide how many processes the text is worth."""
    text_bytes = sum(estimate_text_bytes(corpus.files) for corpus in corpora)
    if not work.chunks_done.is_file():
        # Cleaned text, encoded parts and shards lie side by side for a while.
        weighted = sum(estimate_text_bytes(corpus.files) * max(1.0, corpus.weight) for corpus in corpora)
        check_room(request.out, int(2 * weighted) + _SPARE_BYTES)
    if request.num_workers is not None:
        return request.num_workers
    return 1 if text_bytes < _SMALL_TEXT_BYTES else min(_num_cores(), _MAX_WORKERS)


def _num_cores() -> int:
    """Those this process may use, where the system says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _clean(
    request: Request, corpora: list[Corpus], work: WorkFolder, workers: Workers, progress: Progress
) -> list[ChunkReport]:
    """Every chunk cleaned once: those with a report are not done again."""
    if not work.chunks_done.is_file():
        total = sum(estimate_text_bytes(corpus.files) for corpus in corpora)
        done = 0
        for report in workers.run(clean_chunk, _chunk_tasks(request, corpora, work)):
            done += report.raw_source_bytes + report.raw_target_bytes
            progress("cleaning", done, max(total, done))
        write_atomically(work.chunks_done, b"")
    reports = [read_record(report_path(path), ChunkReport) for path in sorted(work.chunks.glob("*.bin"))]
    summary.check_not_empty(reports, None)
    return reports


def _chunk_tasks(request: Request, corpora: list[Corpus], work: WorkFolder) -> Iterator[ChunkTask]:
    for index, corpus in enumerate(corpora):
        for raw in read_chunks(corpus, request.skip_invalid):
            if not report_path(chunk_path(work.chunks, index, raw.number)).is_file():
                yield ChunkTask(
                    raw, corpus, index, request.language_pair, request.data, request.skip_invalid, work.chunks
                )


def _set_apart(request: Request, chunks: list[Path], work: WorkFolder) -> dict[str, list[EvalInfo]]:
    """Dev and test sets written to the work folder. Cheap, so it is simply done anew after an interruption."""
    shutil.rmtree(work.evals, ignore_errors=True)
    evals: dict[str, list[EvalInfo]] = {"dev": [], "test": []}
    for split, entries in (("dev", request.dev), ("test", request.test)):
        for corpus in _eval_corpora(entries, split, request.languages, work.inputs):
            sources, targets = evalsets.read_eval_set(corpus, request.data)
            evals[split].append(write_eval_set(work.evals / split, corpus.name, sources, targets))
    if not request.dev:
        splits = ["dev"] if request.test else ["dev", "test"]
        for split, pairs in zip(splits, evalsets.hold_out(chunks, request.data, len(splits)), strict=True):
            evals[split].append(write_eval_set(work.evals / split, "held-out", pairs.sources, pairs.targets))
    return evals


def _eval_corpora(entries: tuple[Corpus | Named, ...], split: str, languages: str, folder: Path) -> Iterator[Corpus]:
    """Two sets of one name, such as two files dev.en, are told apart by a number."""
    seen: dict[str, int] = {}
    for entry in entries:
        corpus = entry if isinstance(entry, Corpus) else catalog.fetch_eval(entry, split, languages, folder)
        seen[corpus.name] = seen.get(corpus.name, 0) + 1
        number = seen[corpus.name]
        yield corpus if number == 1 else replace(corpus, name=f"{corpus.name}-{number}")


def _learn(
    request: Request,
    text: CleanText,
    ranges: list[tuple[int, int]],
    work: WorkFolder,
    workers: Workers,
    progress: Progress,
) -> int:
    """The vocabulary in the work folder, and the number of lines it was learned from."""
    if work.vocab_facts.is_file():
        return read_record(work.vocab_facts, int)
    num_lines = 0
    if request.vocab_path:
        model = adopt_vocab(request.vocab_path)
    else:
        progress("learning the vocabulary", 0, 0)
        task = LearnTask(text, tuple(ranges), request.vocab)
        learned = next(workers.run(learn_from_sample, [task]))
        model, num_lines = learned.model, learned.num_lines
    write_atomically(work.vocab, model)
    write_atomically(work.vocab_facts, json.dumps(num_lines).encode())
    return num_lines


def _encode(
    text: CleanText,
    ranges: list[tuple[int, int]],
    rates: MaskRates | None,
    num_corpora: int,
    work: WorkFolder,
    workers: Workers,
    progress: Progress,
) -> list[PartReport]:
    def tasks() -> Iterator[PartTask]:
        for number, buckets in enumerate(ranges):
            if not (work.parts / f"{part_name(number)}.json").is_file():
                yield PartTask(text, number, buckets, num_corpora, work.vocab, rates, work.parts)

    for done, _ in enumerate(workers.run(encode_part, tasks()), start=1):
        progress("encoding", done, len(ranges))
    paths = [work.parts / f"{part_name(number)}.json" for number in range(len(ranges))]
    return [read_record(path, PartReport) for path in paths]


def _publish(work: WorkFolder, manifest: Manifest) -> None:
    """Move everything to its final name; the manifest, which makes the folder valid, comes last."""
    moves = {work.train: "train", work.evals / "dev": "dev", work.evals / "test": "test", work.vocab: VOCAB_NAME}
    for path, name in moves.items():
        if path.exists():
            target = work.out / name
            if target.is_dir():
                shutil.rmtree(target)
            path.replace(target)
    write_manifest(manifest, work.out)
