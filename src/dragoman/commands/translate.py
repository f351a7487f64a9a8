"""`dragoman translate`: text in, text out, its layout and order kept."""

import contextlib
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.translate.documents.formats import Format
    from dragoman.translate.parts import Hypothesis
    from dragoman.translate.translator import Translator

CHUNK_LINES = 512
MAX_DOCUMENT_BYTES = 64 * 2**20  # of HTML and Markdown, which are read whole


def translate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run, one of its checkpoints, or an export.")],
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Text; standard input if left out.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write here, whole or not at all.")] = None,
    format: Annotated[
        Literal["text", "html", "markdown"] | None,
        typer.Option(help="What the text is; by the end of the file's name if left out."),
    ] = None,
    split: Annotated[
        bool, typer.Option("--split/--no-split", help="Whether a line may hold several sentences.")
    ] = True,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept per sentence; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(min=0, help="Score = log-probability / length^this.")] = None,
    max_length: Annotated[int | None, typer.Option(min=1, help="Longest translation, in pieces.")] = None,
    n_best: Annotated[
        int, typer.Option(min=1, help="More than 1: as many lines per line, each `number|||text|||score`.")
    ] = 1,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Every translation begins with this.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw words by their probability, not the best.")] = False,
    top_k: Annotated[int, typer.Option(min=0, help="With --sample: among so many words; 0 is all.")] = 0,
    temperature: Annotated[float, typer.Option(min=0.01, help="With --sample: less is nearer to the best.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="With --sample: another one, other words.")] = 0,
    replace_unknowns: Annotated[
        bool, typer.Option("--replace-unknowns", help="Write the source word where the model has none.")
    ] = False,
    alignments: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write here which word came from which: `0-0 1-2` a line.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Addresses, tags, numbers and emoji come back as they are.")
    ] = True,
    batch_tokens: Annotated[int | None, typer.Option(min=1, help="Source tokens x beam in one batch.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the GPU where there is one.")] = None,
) -> None:
    """Translate text: sentences, lines, whole documents."""
    from dragoman.allocator import keep_freed_memory
    from dragoman.translate.documents.formats import format_of
    from dragoman.translate.translator import Sampling, Translator

    keep_freed_memory()
    kind: Format = format or (format_of(file.name) if file else "text")
    if kind != "text" and (n_best > 1 or alignments):
        raise DragomanError(f"--n-best and --alignments are for lines, not for {kind}", "give --format text")
    options: dict[str, Any] = {
        "beam": beam,
        "length_penalty": length_penalty,
        "max_length": max_length,
        "num_best": n_best,
        "batch_tokens": batch_tokens,
        "sampling": Sampling(top_k, temperature, seed) if sample else None,
        "alignments": alignments is not None,
        "replace_unknowns": replace_unknowns,
        "keep": keep,
    }
    with _open(file) as stream, _writing(out) as output, _writing(alignments) as aligned:
        translator = Translator(model, device, threads)

        def find(sentences: list[str]) -> "list[list[Hypothesis]]":
            return translator.translate(sentences, prefixes=[prefix] * len(sentences) if prefix else None, **options)

        if kind != "text":
            _translate_document(stream, file, kind, translator, find, output)
        else:
            language = translator.languages[0] if split else None
            _translate_lines(stream, file, language, n_best, find, output, aligned if alignments else None)
        if translator.num_cut:
            sys.stderr.write(f"note: {translator.num_cut:,} long sentences were translated in parts\n")


Find = Callable[[list[str]], "list[list[Hypothesis]]"]


def _translate_document(
    stream: IO[bytes], file: Path | None, kind: "Format", translator: "Translator", find: Find, output: IO[str]
) -> None:
    from dragoman.translate.documents.formats import split_document

    data = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DragomanError(f"{_name(file)} has more than {MAX_DOCUMENT_BYTES:,} bytes", "cut it into several files")
    document = split_document(_text(data, _name(file)), kind, translator.languages[0])
    with _progress(len(document.sentences), "sentences") as advance:
        texts: list[str] = []
        for sentences in _chunks((sentence.text for sentence in document.sentences), CHUNK_LINES):
            texts += [best[0].text for best in find(sentences)]
            advance(len(sentences))
    output.write(document.filled(texts))


def _translate_lines(
    stream: IO[bytes],
    file: Path | None,
    language: str | None,
    n_best: int,
    find: Find,
    output: IO[str],
    aligned: IO[str] | None,
) -> None:
    """Memory is that of a chunk of lines. `language`: by whose rules a line is cut into sentences; None: not at all."""
    from dragoman.translate.alignment import to_pharaoh
    from dragoman.translate.documents.lines import translate_lines

    number = 0
    # A person who types sees an answer after every line; a file goes in chunks.
    size = 1 if stream.isatty() else CHUNK_LINES
    with _progress(file.stat().st_size if file else None, "bytes") as advance:
        for lines in _chunks(_decoded(stream, _name(file)), size):
            results = find(lines) if language is None else translate_lines(lines, language, find)
            for line, best in zip(lines, results, strict=True):
                number += 1
                output.writelines(_written(number, best, n_best))
                if aligned is not None:
                    aligned.write(to_pharaoh(best[0].alignment or ()) + "\n")
                advance(len(line.encode(errors="surrogatepass")) + 1)
            output.flush()


def _written(number: int, best: "list[Hypothesis]", n_best: int) -> list[str]:
    if n_best == 1:
        return [best[0].text + "\n"]
    return [f"{number}|||{each.text}|||{each.score:.4f}\n" for each in best]


def _open(file: Path | None) -> IO[bytes]:
    if file is None:
        return sys.stdin.buffer
    try:
        return file.open("rb")
    except OSError as error:
        raise DragomanError(f"cannot read {file}: {error.strerror}", "name a text file") from None


@contextlib.contextmanager
def _writing(path: Path | None) -> Generator[IO[str]]:
    """A file that appears under its name when all is written; the output where there is none."""
    if path is None:
        yield sys.stdout
        return
    fresh = path.with_name(f".{path.name}.partial")
    try:
        with fresh.open("w", encoding="utf-8", newline="") as file:
            yield file
        fresh.replace(path)
    except OSError as error:
        raise DragomanError(f"cannot write {path}: {error.strerror}", "name another file") from None
    finally:
        fresh.unlink(missing_ok=True)


@contextlib.contextmanager
def _progress(total: int | None, unit: str) -> Generator[Callable[[int], None]]:
    """A bar for files in a terminal; quiet elsewhere."""
    if total is None or not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"translating {unit}", total=total)
        yield lambda count: progress.advance(task, count)


def _name(file: Path | None) -> str:
    return "standard input" if file is None else str(file)


def _decoded(stream: IO[bytes], name: str) -> Iterator[str]:
    from dragoman.data.corpus import MAX_LINE_BYTES

    lines = iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE_BYTES:
            problem = f"{name}, line {number}: longer than {MAX_LINE_BYTES:,} bytes"
            raise DragomanError(problem, "put one sentence on a line")
        yield _text(line, f"{name}, line {number}").rstrip("\r\n")


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DragomanError(f"{place}: not valid UTF-8", "convert the text to UTF-8") from None


def _chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while chunk := list(islice(iterator, size)):
        yield chunk
