"""From what a user names (files, corpora, weights) to what `prepare` reads. Knows options, reads nothing."""

from collections.abc import Sequence
from pathlib import Path

from dragoman.config import Recipe
from dragoman.data.catalog import Named
from dragoman.data.corpus import Corpus
from dragoman.errors import DragomanError


def training_corpora(
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


def eval_sets(
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


def stated_languages(given: str | None, recipe: Recipe, corpora: Sequence[Corpus | Named]) -> str:
    if given or recipe.data.languages:
        return given or str(recipe.data.languages)
    if corpora and all(isinstance(entry, Named) and entry.name == "phrasebook" for entry in corpora):
        return "en-de"
    raise DragomanError("the languages are not stated", "add --languages with source and target, for example en-de")
