"""`dragoman translate`: lines in, lines out, in order."""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Annotated

import typer

from dragoman.errors import DragomanError

CHUNK_LINES = 512


def translate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, one of its checkpoints, or an export.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Text, one sentence a line; standard input if left out.")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept per sentence; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(min=0, help="Score = log-probability / length^this.")] = None,
    max_length: Annotated[int | None, typer.Option(min=1, help="Longest translation, in pieces.")] = None,
    n_best: Annotated[
        int, typer.Option(min=1, help="More than 1: as many lines per sentence, each `number|||text|||score`.")
    ] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the GPU where there is one.")] = None,
) -> None:
    """Translate text, line by line."""
    from dragoman.translate.translator import Translator

    with _open(file) as stream:
        translator = Translator(model, device, threads)
        num_done = 0
        # A person who types sees an answer after every line; a file goes in chunks.
        size = 1 if stream.isatty() else CHUNK_LINES
        for lines in _chunks(_decoded(stream, file), size):
            results = translator.translate(lines, beam, length_penalty, max_length, n_best)
            for number, best in enumerate(results, start=num_done + 1):
                for hypothesis in best:
                    line = hypothesis.text if n_best == 1 else f"{number}|||{hypothesis.text}|||{hypothesis.score:.4f}"
                    sys.stdout.write(line + "\n")
            sys.stdout.flush()
            num_done += len(lines)
            if file is not None and sys.stderr.isatty():
                sys.stderr.write(f"\r{num_done:,} sentences")
        if file is not None and sys.stderr.isatty():
            sys.stderr.write("\n")
        if translator.num_cut:
            sys.stderr.write(
                f"warning: {translator.num_cut:,} lines are too long for the model; their ends were left out\n"
            )


def _open(file: Path | None) -> IO[bytes]:
    if file is None:
        return sys.stdin.buffer
    try:
        return file.open("rb")
    except OSError as error:
        raise DragomanError(f"cannot read {file}: {error.strerror}", "name a text file") from None


def _decoded(stream: IO[bytes], file: Path | None) -> Iterator[str]:
    from dragoman.data.corpus import MAX_LINE_BYTES

    name = "standard input" if file is None else str(file)
    lines = iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE_BYTES:
            problem = f"{name}, line {number}: longer than {MAX_LINE_BYTES:,} bytes"
            raise DragomanError(problem, "put one sentence on a line")
        try:
            yield line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise DragomanError(f"{name}, line {number}: not valid UTF-8", "convert the text to UTF-8") from None


def _chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while chunk := list(islice(iterator, size)):
        yield chunk
