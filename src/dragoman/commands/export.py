"""`dragoman export`: a model to ship, checked against the original before it gets its name."""

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.units import format_bytes, plural

if TYPE_CHECKING:
    from dragoman.translate.export.exporter import Exported

Watch = Callable[[str, int], Callable[[int], None]]


class To(StrEnum):
    ctranslate2 = "ctranslate2"
    huggingface = "huggingface"


class Quantization(StrEnum):
    int8 = "int8"
    int8_float16 = "int8_float16"
    float16 = "float16"
    float32 = "float32"


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, or one of its checkpoints.")],
    to: Annotated[To, typer.Option("--to", help="Which library is to translate with it.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to make; it must not exist.")],
    quantization: Annotated[
        Quantization | None, typer.Option(help="How numbers are kept; int8 for ctranslate2, float32 for huggingface.")
    ] = None,
    average: Annotated[
        int | None, typer.Option(min=2, metavar="K", help="Export the mean of the last K checkpoints of the run.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Sentences to compare on; otherwise the run's dev set.")
    ] = None,
    target: Annotated[Path | None, typer.Option(metavar="FILE", help="Their reference translations.")] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Compare on the dev set of this data folder.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, metavar="N", help="Compare on the first N sentences.")] = 500,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Export weights that are not those the run wrote, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print model.json instead of a summary.")] = False,
) -> None:
    from dragoman.translate.export.exporter import Request, export_model
    from dragoman.translate.export.sample import SampleChoice

    choice = SampleChoice(source, target, data, sentences)
    kept = quantization.value if quantization else None
    request = Request(Path(model), to.value, out, kept, average, choice, threads, force)
    with _bars() as watch:
        done = export_model(request, watch)
    typer.echo(_to_json(done) if as_json else _to_text(done))


@contextmanager
def _bars() -> Generator[Watch]:
    """A bar for everything that takes long; quiet when not a terminal."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TextColumn("sentences"), TimeRemainingColumn())
    is_quiet = not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=is_quiet) as progress:

        def watch(description: str, total: int) -> Callable[[int], None]:
            task = progress.add_task(description, total=total)
            return lambda count: progress.advance(task, count)

        yield watch


def _to_json(done: "Exported") -> str:
    values = {"path": str(done.path), **done.info.model_dump(mode="json", by_alias=True), "notes": list(done.notes)}
    return json.dumps(values, ensure_ascii=False, indent=2)


def _to_text(done: "Exported") -> str:
    info, sample = done.info, done.verdict.sample
    size = format_bytes(sum(entry.num_bytes for entry in info.files.values()))
    lines = [
        f"{done.path}: {info.format}, {info.quantization}, {size}",
        f"compared with the original on {plural(len(sample.sources), 'sentence')} of {sample.name}:",
        *(f"  {check.text}" for check in done.verdict.checks),
        f"  {plural(done.verdict.comparison.num_equal, 'sentence')} translated alike in beam search",
        *(f"note: {note}" for note in done.notes),
    ]
    return "\n".join(lines)
