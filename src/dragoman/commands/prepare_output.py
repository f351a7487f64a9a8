"""What `dragoman prepare` shows: a progress bar while it works, tables when it is done."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dragoman.data.manifest import CorpusStats, Manifest
from dragoman.units import format_count, format_seconds

_QUIET_SECONDS = 2.0


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


class Bars:
    """A progress bar on stderr, shown only in a terminal and only when the work takes longer than two seconds."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        self._progress = Progress(*columns, TimeRemainingColumn(), console=self._console, transient=True)
        self._task: TaskID | None = None
        self._stage = ""
        self._start = time.monotonic()

    def __enter__(self) -> "Bars":
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
