"""`dragoman prepare`: parse, prepare, print what the data folder holds."""

from pathlib import Path
from typing import Annotated

import typer


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
    from dragoman.commands.prepare_output import Bars, print_summary
    from dragoman.data.inputs import eval_sets, stated_languages, training_corpora
    from dragoman.data.prepare import prepare as prepare_data
    from dragoman.data.request import Request
    from dragoman.recipe import load_recipe

    changes = list(set_ or [])
    if vocab_size is not None:
        changes.append(f"vocab.size={vocab_size}")
    settings = load_recipe(recipe, changes)
    corpora = training_corpora(settings, source, target, tsv, corpus, weight)
    request = Request(
        out=out,
        languages=stated_languages(languages, settings, corpora),
        corpora=corpora,
        dev=eval_sets("dev", dev_source, dev_target, settings.data.dev, corpora),
        test=eval_sets("test", test_source, test_target, settings.data.test, corpora),
        data=settings.data,
        vocab=settings.vocab,
        vocab_path=vocab,
        skip_invalid=skip_invalid,
        num_workers=workers,
    )
    with Bars() as bars:
        prepared = prepare_data(request, bars.show)
    for note in prepared.manifest.notes:
        typer.echo(note, err=True)
    if not prepared.is_new:
        typer.echo(f"{out} is already prepared from this text with these settings", err=True)
    print_summary(prepared.manifest, out, as_json=json)
