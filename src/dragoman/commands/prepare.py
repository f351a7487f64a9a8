"""`dragoman prepare`: parse, prepare, print what the data folder holds."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dragoman.config import Recipe
from dragoman.data.catalog import Named
from dragoman.data.corpus import Corpus
from dragoman.data.manifest import CorpusStats, Manifest
from dragoman.data.prepare import prepare as prepare_data
from dragoman.data.request import Request
from dragoman.errors import DragomanError
from dragoman.recipe import load_recipe
from dragoman.units import format_count, format_seconds

_QUIET_SECONDS = 2.0


def prepare(
    recipe: Annotated[str, typer.Argument(help="Recipe: a shipped name or a TOML file.")] = "small",
    out: Annotated[Path, typer.Option(help="Data folder to make.")] = ...,  # type: ignore[assignment]
    languages: Annotated[str | None, typer.Option(help="Source and target language, such as en-de.")] = None,
    source: Annotated[list[Path] | None, typer.Option(help="Source text: plain, .gz, .xz or .zst.")] = None,
    target: Annotated[list[Path] | None, typer.Option(help="Its translation, line by line.")] = None,
    tsv: Annotated[list[Path] | None, typer.Option(help="Text with two tab-separated columns.")] = None,
    corpus: Annotated[list[str] | None, typer.Option(help="Corpus of the catalogue, such as phrasebook.")] = None,
    weight: Annotated[
        list[float] | None, typer.Option(help="Weight of each corpus, in the order source, tsv, corpus.")
    ] = None,
    dev_source: Annotated[list[Path] | None, typer.Option(help="Source side of a dev set.")] = None,
    dev_target: Annotated[list[Path] | None, typer.Option(help="Target side of a dev set.")] = None,
    test_source: Annotated[list[Path] | None, typer.Option(help="Source side of a test set.")] = None,
    test_target: Annotated[list[Path] | None, typer.Option(help="Target side of a test set.")] = None,
    vocab: Annotated[Path | None, typer.Option(help="Use this SentencePiece .model.")] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Pieces of the vocabulary to learn.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a setting: data.max_words=80.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one a core.")] = None,
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Count invalid lines and go on.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
) -> None:
    changes = list(set_ or [])
    if vocab_size is not None:
        changes.append(f"vocab.size={vocab_size}")
    settings = load_recipe(recipe, changes)
    corpora = _training_corpora(settings, source, target, tsv, corpus, weight)
    request = Request(
        out=out,
        languages=_languages(languages, settings, corpora),
        corpora=corpora,
        dev=_eval_sets("dev", dev_source, dev_target, settings.data.dev, corpora),
        test=_eval_sets("test", test_source, test_target, settings.data.test, corpora),
        data=settings.data,
        vocab=settings.vocab,
        vocab_path=vocab,
        skip_invalid=skip_invalid,
        num_workers=workers,
    )
    with _Bars() as bars:
        prepared = prepare_data(request, bars.show)
    for note in prepared.manifest.notes:
        typer.echo(note, err=True)
    if not prepared.is_new:
        typer.echo(f"{out} is already prepared from this text with these settings", err=True)
    print_summary(prepared.manifest, out, as_json=json)


def print_summary(manifest: Manifest, out: Path, as_json: bool) -> None:
    if as_json:
        typer.echo(manifest.to_json(), nl=False)
        return
    console = Console()
    for table in (_corpora_table(manifest), _rejects_table(manifest)):
        if table.row_count:
            console.print(table)
    for line in _closing_lines(manifest, out):
        typer.echo(line)


def _training_corpora(
    recipe: Recipe,
    source: Sequence[Path] | None,
    target: Sequence[Path] | None,
    tsv: Sequence[Path] | None,
    names: Sequence[str] | None,
    weights: Sequence[float] | None,
) -> tuple[Corpus | Named, ...]:
    """Files and names given on the command line, or else the recipe's corpora."""
    found: list[Corpus | Named] = list(_file_pairs("", source, target))
    found += [Corpus(_stem(path), path, None) for path in tsv or []]
    found += [Named(name) for name in names or []]
    if not found:
        found = [Named(name) for name in recipe.data.corpora]
    if weights and len(weights) != len(found):
        raise DragomanError(
            f"{len(weights)} weights for {len(found)} corpora", "give --weight once for each corpus, or not at all"
        )
    if weights:
        found = [_with_weight(entry, weight) for entry, weight in zip(found, weights, strict=True)]
    return tuple(found)


def _with_weight(entry: Corpus | Named, weight: float) -> Corpus | Named:
    if isinstance(entry, Named):
        return Named(entry.name, weight)
    return Corpus(entry.name, entry.source, entry.target, weight)


def _eval_sets(
    split: str,
    source: Sequence[Path] | None,
    target: Sequence[Path] | None,
    names: Sequence[str],
    corpora: Sequence[Corpus | Named],
) -> tuple[Corpus | Named, ...]:
    """Given files; else the sets that come with the recipe's text or with the phrasebook; else none."""
    files = _file_pairs(f"{split}-", source, target)
    if files:
        return tuple(files)
    is_named = [entry for entry in corpora if isinstance(entry, Named)]
    if names and is_named:
        return tuple(Named(name) for name in names)
    return tuple(entry for entry in is_named if entry.name == "phrasebook")


def _file_pairs(prefix: str, source: Sequence[Path] | None, target: Sequence[Path] | None) -> list[Corpus]:
    sources, targets = list(source or []), list(target or [])
    if len(sources) != len(targets):
        raise DragomanError(
            f"--{prefix}source is given {len(sources)} times and --{prefix}target {len(targets)} times",
            "give both sides of every corpus, in the same order",
        )
    return [Corpus(_stem(left), left, right) for left, right in zip(sources, targets, strict=True)]


def _stem(path: Path) -> str:
    """train.en.xz -> train."""
    return path.name.split(".")[0] or path.name


def _languages(given: str | None, recipe: Recipe, corpora: Sequence[Corpus | Named]) -> str:
    if given or recipe.data.languages:
        return given or str(recipe.data.languages)
    if corpora and all(isinstance(entry, Named) and entry.name == "phrasebook" for entry in corpora):
        return "en-de"
    raise DragomanError("the languages are not stated", "add --languages with source and target, for example en-de")


class _Bars:
    """A progress bar on stderr, shown only in a terminal and only when the work takes longer than two seconds."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        self._progress = Progress(*columns, TimeRemainingColumn(), console=self._console, transient=True)
        self._task: TaskID | None = None
        self._stage = ""
        self._start = time.monotonic()

    def __enter__(self) -> "_Bars":
        return self

    def __exit__(self, *error: Any) -> None:
        if self._task is not None:
            self._progress.stop()

    def show(self, stage: str, done: float, total: float) -> None:
        if not self._console.is_terminal or time.monotonic() - self._start < _QUIET_SECONDS:
            return
        if stage != self._stage:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._progress.start()
            self._stage, self._task = stage, self._progress.add_task(stage, total=total or None)
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total or None)


def _corpora_table(manifest: Manifest) -> Table:
    source, target = manifest.languages.split("-")
    table = Table("", "lines", f"{source} MB", f"{target} MB", f"{source} tokens", f"{target} tokens")
    for column in table.columns[1:]:
        column.justify = "right"
    for entry in manifest.corpora:
        weight = "" if entry.weight == 1 else f", weight {entry.weight:g}"
        _add_corpus(table, f"{entry.name}{weight}", [entry])
    if len(manifest.corpora) > 1:
        _add_corpus(table, "all together", manifest.corpora)
    return table


def _add_corpus(table: Table, title: str, entries: Sequence[CorpusStats]) -> None:
    def megabytes(name: str) -> list[str]:
        totals = [sum(getattr(entry, f"{name}_{side}_bytes") for entry in entries) for side in ("source", "target")]
        return [f"{total / 1e6:,.1f}" for total in totals]

    tokens = [sum(getattr(entry, f"{side}_tokens") for entry in entries) for side in ("source", "target")]
    table.add_row(title, style="bold")
    table.add_row("  before cleaning", f"{sum(entry.raw_lines for entry in entries):,}", *megabytes("raw"))
    table.add_row("  after cleaning", f"{sum(entry.clean_lines for entry in entries):,}", *megabytes("clean"))
    pieces = [format_count(number) for number in tokens]
    num_pairs = sum(entry.train_pairs for entry in entries)
    table.add_row("  to train on, as BPE text", f"{num_pairs:,}", *megabytes("bpe"), *pieces, end_section=True)


def _rejects_table(manifest: Manifest) -> Table:
    table = Table("left out", "pairs", "for example, line: source | target")
    table.columns[1].justify = "right"
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for entry in manifest.corpora:
        prefix = f"{entry.name}: " if len(manifest.corpora) > 1 else ""
        for reason, rejects in entry.rejected.items():
            example = rejects.examples[0]
            text = Text(f"{example.line:,}: {example.source} | {example.target}", no_wrap=True, overflow="ellipsis")
            table.add_row(f"{prefix}{reason}", f"{rejects.num_pairs:,}", text)
    return table


def _closing_lines(manifest: Manifest, out: Path) -> list[str]:
    evals = [
        f"{split} {entry.name} {entry.num_pairs:,} pairs"
        for split, entries in (("dev", manifest.dev), ("test", manifest.test))
        for entry in entries
    ]
    lines = [f"evaluation:   {', '.join(evals)}"]
    lines += [f"vocabulary:   {manifest.vocab.size:,} pieces, {manifest.vocab.origin}"]
    lines += [
        f"{side} length: {stats.mean:.1f} pieces on average, half up to {stats.p50}, 99 % up to {stats.p99}, "
        f"longest {stats.max}"
        for side, stats in (("source", manifest.source_lengths), ("target", manifest.target_lengths))
    ]
    lines += [f"placeholders: in {manifest.placeholder_pairs:,} of {manifest.num_train_pairs:,} training pairs"]
    stages = [f"{stage} {format_seconds(seconds)}" for stage, seconds in manifest.seconds.items()]
    lines += [f"time:         {', '.join(stages)}"]
    shards = "1 shard" if len(manifest.shards) == 1 else f"{len(manifest.shards)} shards"
    lines += [f"{out} is ready: {manifest.num_train_pairs:,} training pairs in {shards}"]
    return lines
