"""`dragoman demo`: the other commands in a row, on the embedded corpus."""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dragoman.units import format_seconds

# A slow link makes such steps long: enough of them for a verdict.
EXACT_STEPS = 25
EXACT = (
    "sync.method=dense",
    "sync.precision=fp32",
    f"train.max_steps={EXACT_STEPS}",
    "evaluate.decode=false",
)
SENTENCES = ("The old baker gave his neighbour a warm cake.", "I do not want to sell the old car.")


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for data, run and report.")] = Path("demo"),
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    link: Annotated[
        str | None, typer.Option(metavar="SPEED", help="Train on two emulated hosts joined by such a link: 20mbit.")
    ] = None,
) -> None:
    """The whole job on the embedded corpus: prepare, train, evaluate, translate, report."""
    from dragoman.commands.evaluate import evaluate
    from dragoman.commands.export import To, export
    from dragoman.commands.prepare import prepare
    from dragoman.commands.report import report
    from dragoman.commands.train import train

    if link is not None:
        _try_lab(link)
    start = time.monotonic()
    data, run, exact_run, model = out / "data", out / "run", out / "exact-run", out / "model"
    say = _headings(6 if link is None else 7)
    say(f"prepare: English-German sentences from a grammar -> {data}")
    prepare("phrasebook", out=data)
    if link is None:
        say(f"train: a small Transformer on {workers} local workers -> {run}")
        train("phrasebook", data=data, run=run, workers=workers)
    else:
        workers_each = max(1, workers // 2)
        say(f"train {EXACT_STEPS} steps the usual way, every gradient sent whole, on two emulated hosts -> {exact_run}")
        _train_in_lab(link, data, exact_run, workers_each, EXACT)
        report(exact_run)
        say(f"train: the exchange that this link can carry -> {run}")
        _train_in_lab(link, data, run, workers_each)
    say("evaluate: 1,000 test sentences; none of their verbs was seen in such a sentence before")
    evaluate(str(run))
    say("translate")
    _translate_samples(run)
    say("report")
    report(run)
    say(f"export: a model to ship, compared with the original -> {model}")
    _remove_old(model)
    export(str(run), To.ctranslate2, out=model)
    typer.echo(
        f"\nDone in {format_seconds(time.monotonic() - start)}. These are synthetic sentences: the score tells that "
        "the machinery works and is not comparable with any published one.\n"
        f"  Open the report:            {(run / 'report.html').resolve().as_uri()}\n"
        f"  Open a translation page:    {_program()} serve {model} --browser"
    )
    if link is not None:
        typer.echo(
            f"  And of the usual way:       {(exact_run / 'report.html').resolve().as_uri()}\n"
            f"  What made the difference:   {_program()} compare {exact_run} {run}"
        )
    typer.echo(
        f"  Translate a sentence:       echo 'The child reads a letter.' | {_program()} translate {run}\n"
        f"  Train on your own text:     {_program()} prepare --languages en-de --source a.en --target a.de --out data"
    )


def _try_lab(link: str) -> None:
    """A machine that cannot have emulated hosts says so now, not after the data is prepared."""
    from dragoman.launch.lab.lab import open_lab
    from dragoman.launch.lab.link import parse_link

    with open_lab(1, parse_link(link)):
        pass


def _train_in_lab(link: str, data: Path, run: Path, workers: int, settings: Sequence[str] = ()) -> None:
    from dragoman.launch.lab.foreground import run_in_lab
    from dragoman.launch.lab.lab import open_lab
    from dragoman.launch.lab.link import parse_link

    command = [sys.executable, "-P", "-m", "dragoman.cli", "train", "phrasebook", "--hosts", "a,b", "--yes"]
    command += ["--workers", str(workers), "--data", str(data.resolve()), "--run", str(run.resolve())]
    command += [word for setting in settings for word in ("--set", setting)]
    with open_lab(2, parse_link(link), working_folder=data.parent) as lab:
        for line in lab.describe():
            typer.echo(line, err=True)
        code = run_in_lab(lab, command)
    if code:
        raise typer.Exit(code)


def _program() -> str:
    """How to type the command: by name where the shell finds it, else as it was called."""
    return "dragoman" if shutil.which("dragoman") else sys.argv[0]


def _headings(count: int) -> Callable[[str], None]:
    """Each call says a heading with the next number."""
    numbers = iter(range(1, count + 1))
    return lambda text: typer.secho(f"\n{next(numbers)} of {count}  {text}", bold=True)


def _remove_old(model: Path) -> None:
    """Of a demo before this one: the run may have gone on since."""
    from dragoman.translate.export_folder import is_export

    if is_export(model):
        shutil.rmtree(model)


def _translate_samples(run: Path) -> None:
    from dragoman.translate.translator import Translator

    for source, best in zip(SENTENCES, Translator(run).translate(SENTENCES), strict=True):
        typer.echo(f"  {source}\n    {best[0].text}")
