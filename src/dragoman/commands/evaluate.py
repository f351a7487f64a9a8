"""`dragoman evaluate`: translate a test set and score it; with `--against`, compare two models sentence by sentence."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.errors import CheckFailed, DragomanError

if TYPE_CHECKING:
    from dragoman.score import Comparison, Scores

GIVE_FILES = "give the text with --source FILE --target FILE, or a data folder with --data DIR"


@dataclass(frozen=True)
class TestSet:
    name: str
    sources: list[str]
    references: list[str]
    target_language: str


@dataclass(frozen=True)
class Result:
    """One test set translated and scored."""

    test_set: TestSet
    hypotheses: list[str]
    scores: "Scores"
    comparison: "Comparison | None"


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, one of its checkpoints, or an export.")],
    source: Annotated[Path | None, typer.Option(metavar="FILE", help="Text to translate, one sentence a line.")] = None,
    target: Annotated[Path | None, typer.Option(metavar="FILE", help="Its reference translation.")] = None,
    against: Annotated[str | None, typer.Option(metavar="MODEL", help="Compare with this model.")] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Use the test sets of this data folder; otherwise the run's own.")
    ] = None,
    set_name: Annotated[str | None, typer.Option(metavar="NAME", help="Only the test or dev set of this name.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept per sentence; 1 is greedy.")] = None,
    batch_tokens: Annotated[int | None, typer.Option(min=1, help="Source tokens x beam in one batch.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the translations here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="Exit code 1 if BLEU is worse than --against beyond chance.")
    ] = False,
) -> None:
    if fail_if_worse and against is None:
        raise DragomanError("--fail-if-worse needs a model to compare with", "add --against MODEL")
    test_sets = find_test_sets(model, source, target, data, set_name)
    if out is not None and len(test_sets) > 1:
        names = ", ".join(entry.name for entry in test_sets)
        raise DragomanError(
            f"--out is one file, and there are {len(test_sets)} sets: {names}", "choose with --set-name"
        )
    options = {"beam": beam} | ({"batch_tokens": batch_tokens} if batch_tokens else {})
    results = _evaluate_all(test_sets, model, against, threads, options)
    if out is not None:
        write_lines(out, results[0].hypotheses)
    typer.echo(_to_json(model, against, results) if as_json else _to_text(model, against, results))
    worse = [result.test_set.name for result in results if result.comparison and result.comparison.bleu.a_is_worse]
    if fail_if_worse and worse:
        raise CheckFailed(f"{model} is worse than {against} on {', '.join(worse)}", "see the comparison above")


def find_test_sets(
    model: str, source: Path | None, target: Path | None, data: Path | None, set_name: str | None
) -> list[TestSet]:
    """The files given; else the test sets of the data folder; else its dev sets."""
    if (source is None) != (target is None):
        raise DragomanError("--source and --target belong together", GIVE_FILES)
    if source is not None and target is not None:
        return [_read_files(source, target, _target_language(model))]
    from dragoman.data.shards import open_shards

    shards = open_shards(data or _data_folder(model))
    available = [*shards.test_sets, *shards.dev_sets]
    chosen = shards.test_sets or shards.dev_sets
    if set_name is not None:
        chosen = [entry for entry in available if entry.name == set_name][:1]
        if not chosen:
            names = ", ".join(entry.name for entry in available)
            raise DragomanError(f"{shards.folder} has no set {set_name!r}", f"it has {names}")
    return [TestSet(entry.name, *entry.lines(), shards.manifest.target_language) for entry in chosen]


def _read_files(source: Path, target: Path, target_language: str) -> TestSet:
    from dragoman.data.evalsets import read_text_pair

    return TestSet(source.name, *read_text_pair(source, target), target_language)


def _run_folder(model: str) -> Path | None:
    """MODEL may be a run or a checkpoint inside one."""
    path = Path(model).resolve()
    for candidate in (path, path.parent.parent):
        if (candidate / "manifest.json").is_file() and (candidate / "checkpoints").is_dir():
            return candidate
    return None


def _data_folder(model: str) -> Path:
    from dragoman.run.folder import open_run_folder
    from dragoman.run.reader import read_manifest

    run = _run_folder(model)
    if run is None:
        if not Path(model).exists():
            raise DragomanError(f"there is no model {model}", "name a run folder, one of its checkpoints, or an export")
        raise DragomanError(f"{model} does not say which data it was trained on", GIVE_FILES)
    folder = Path(read_manifest(open_run_folder(run)).data.path)
    if not folder.is_dir():
        raise DragomanError(f"the data folder of that run, {folder}, is not here", GIVE_FILES)
    return folder


def _target_language(model: str) -> str:
    """Needed only to cut words in languages without spaces, so not knowing it is no error."""
    from dragoman.run.folder import open_run_folder
    from dragoman.run.reader import read_manifest
    from dragoman.translate.export_folder import is_export, read_info

    if is_export(Path(model)):
        return read_info(Path(model)).target_language
    run = _run_folder(model)
    return read_manifest(open_run_folder(run)).data.languages.partition("-")[2] if run else ""


def _evaluate_all(
    test_sets: Sequence[TestSet], model: str, against: str | None, threads: int | None, options: dict[str, Any]
) -> list[Result]:
    from dragoman.score import compare, score

    ours = _translate_all(model, test_sets, threads, options)
    theirs = _translate_all(against, test_sets, threads, options) if against is not None else None
    results: list[Result] = []
    for number, test in enumerate(test_sets):
        scores = score(ours[number], test.references, test.target_language)
        comparison = None
        if theirs is not None:
            comparison = compare(ours[number], theirs[number], test.references, test.sources, test.target_language)
        results.append(Result(test, ours[number], scores, comparison))
    return results


def _translate_all(
    model: str, test_sets: Sequence[TestSet], threads: int | None, options: dict[str, Any]
) -> list[list[str]]:
    """One model in memory at a time."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from dragoman.translate.translator import Translator

    translator = Translator(model, threads=threads)
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TextColumn("sentences"), TimeRemainingColumn())
    is_quiet = not sys.stderr.isatty()
    translated: list[list[str]] = []
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=is_quiet) as progress:
        for test in test_sets:
            task = progress.add_task(f"{model}: {test.name}", total=len(test.sources))
            best = translator.translate(
                test.sources, on_progress=lambda count, task=task: progress.advance(task, count), **options
            )
            translated.append([hypotheses[0].text for hypotheses in best])
    return translated


def write_lines(path: Path, lines: Sequence[str]) -> None:
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise DragomanError(f"cannot write {path}: {error.strerror}", "name another file with --out") from None


def _to_json(model: str, against: str | None, results: Sequence[Result]) -> str:
    sets = [
        {
            "name": result.test_set.name,
            "num_sentences": len(result.hypotheses),
            "scores": asdict(result.scores),
            "comparison": asdict(result.comparison) if result.comparison else None,
        }
        for result in results
    ]
    return json.dumps({"model": model, "against": against, "sets": sets}, ensure_ascii=False, indent=2)


def _to_text(model: str, against: str | None, results: Sequence[Result]) -> str:
    blocks = [_scores_text(model, result) for result in results]
    blocks += [_comparison_text(against, result) for result in results if result.comparison]
    blocks.append("Intervals hold 95 % of 1,000 bootstrap resamples of the sentences. TER: lower is better.")
    return "\n\n".join(blocks)


def _scores_text(model: str, result: Result) -> str:
    lines = [f"{model} on {result.test_set.name}, {len(result.hypotheses):,} sentences"]
    for metric in result.scores:
        interval = f"[{metric.low:.2f}, {metric.high:.2f}]"
        lines.append(f"  {metric.name:<5} {metric.value:>6.2f}  {interval:<16}  {metric.signature}")
    return "\n".join(lines)


def _comparison_text(against: str | None, result: Result) -> str:
    comparison = result.comparison
    assert comparison is not None
    lines = [f"against {against} on {result.test_set.name}, {comparison.num_equal:,} sentences translated alike"]
    for contrast in comparison:
        interval = f"[{contrast.low:+.2f}, {contrast.high:+.2f}]"
        verdict = "beyond chance" if contrast.is_significant else "may be chance"
        values = f"{contrast.a:>6.2f} against {contrast.b:>6.2f}"
        delta = f"{contrast.delta:+.2f} {interval:<16}"
        lines.append(f"  {contrast.name:<5} {values}  {delta}  p = {contrast.p_value:.3f}, {verdict}")
    for item in comparison.differences:
        lines += [
            "",
            f"  line {item.index + 1}      {item.source or ''}",
            f"    reference {item.reference}",
            f"    this      {item.a}  (chrF {item.chrf_a:.0f})",
            f"    other     {item.b}  (chrF {item.chrf_b:.0f})",
        ]
    return "\n".join(lines)
