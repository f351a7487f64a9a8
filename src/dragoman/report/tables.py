"""The tables of the page and its sample translations, as formatted cells. Knows no HTML."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.diagnose.answers.checkpoint import content_of
from dragoman.recipe import recipe_fields
from dragoman.report.masthead import LANGUAGES, NOT_RECORDED, moment, reason_words
from dragoman.report.palette import PART_COLOURS
from dragoman.report.series import spread
from dragoman.report.summary import CheckpointSize, Summary, recipe_value
from dragoman.run.reader import RunRecord
from dragoman.run.records import EvalSentence, Manifest, SideSize
from dragoman.units import format_bytes_both, format_seconds

NO_BREAK_SPACE = "\u00a0"
PART_NAMES = {"waiting": "exchange: waiting", "transfer": "exchange: transfer"}
PART_MEANINGS = {
    "forward": "computing the loss",
    "backward": "computing the gradients",
    "optimizer": "updating the weights",
    "waiting": "waiting for the slowest rank to come to the exchange",
    "transfer": "waiting for bytes once all ranks were there",
    "data": "waiting for the next batch",
    "validation": "dev loss and translations",
    "checkpoint": "writing checkpoints",
    "other": "everything else",
}


@dataclass(frozen=True)
class Table:
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    num_text: int = 1  # leading columns of text; the others are figures and stand right
    has_total: bool = False  # the last row sums up


@dataclass(frozen=True)
class TimeRow:
    name: str
    label: str
    colour: str
    meaning: str
    share: str
    seconds: str


@dataclass(frozen=True)
class Sample:
    """One sentence, as the model translated it at several evaluations."""

    source: str
    reference: str
    hypotheses: list[tuple[str, str, bool]]  # when, what, whether it equals the reference


@dataclass(frozen=True)
class Setting:
    key: str
    value: str
    meaning: str
    is_changed: bool


def time_rows(summary: Summary) -> list[TimeRow]:
    return [
        TimeRow(
            share.name,
            PART_NAMES.get(share.name, share.name),
            PART_COLOURS[share.name],
            PART_MEANINGS[share.name],
            f"{100 * share.share:.1f}{NO_BREAK_SPACE}%",
            format_seconds(share.seconds).replace(" ", NO_BREAK_SPACE),
        )
        for share in summary.time_shares
    ]


def data_table(manifest: Manifest) -> Table:
    columns = ("Side", "Lines given", "MB given", "Lines cleaned", "MB cleaned", "MB as pieces", "Tokens")
    rows = [_side_row(side) for side in (manifest.data.source, manifest.data.target)]
    return Table(columns, rows)


def _side_row(side: SideSize) -> tuple[str, ...]:
    return (
        LANGUAGES.get(side.language, side.language),
        f"{side.raw_lines:,}",
        f"{side.raw_bytes / 1e6:,.2f}",
        f"{side.clean_lines:,}",
        f"{side.clean_bytes / 1e6:,.2f}",
        f"{side.bpe_bytes / 1e6:,.2f}",
        f"{side.num_tokens:,}",
    )


def data_facts(manifest: Manifest) -> list[tuple[str, str]]:
    data = manifest.data
    named = [("Corpora", data.corpora), ("Dev sets", data.dev_sets), ("Test sets", data.test_sets)]
    facts = [
        (label, ", ".join(f"{name} ({count:,} pairs)" for name, count in sets.items())) for label, sets in named if sets
    ]
    if data.vocab_size:
        facts.append(("Vocabulary", f"{data.vocab_size:,} pieces, shared by both sides"))
    return facts


def samples(run: RunRecord) -> list[Sample]:
    """The same sentences at the first, the middle and the last decoded evaluation."""
    decoded = [record for record in run.evals if record.bleu is not None]
    if not decoded:
        return []
    dev_set = decoded[0].dev_set
    steps = spread([record.step for record in decoded if record.dev_set == dev_set], 3)
    texts = {step: _by_index(run.read_eval_sentences(step, dev_set)) for step in steps}
    last = texts[steps[-1]]
    num_samples = recipe_value(run.manifest, "evaluate", "num_samples")
    indexes = spread(sorted(last), num_samples if isinstance(num_samples, int) else 5)
    return [_sample(index, last[index], texts) for index in indexes]


def _by_index(sentences: Sequence[EvalSentence]) -> dict[int, EvalSentence]:
    return {sentence.index: sentence for sentence in sentences if sentence.hypothesis is not None}


def _sample(index: int, sentence: EvalSentence, texts: dict[int, dict[int, EvalSentence]]) -> Sample:
    found = [(step, by_index[index].hypothesis) for step, by_index in texts.items() if index in by_index]
    hypotheses = [(f"step {step:,}", text or "", text == sentence.reference) for step, text in found]
    return Sample(sentence.source, sentence.reference, hypotheses)


def file_table(checkpoint: CheckpointSize, num_parameters: int) -> Table:
    """The files of one checkpoint, the largest first."""
    rows: list[tuple[str, ...]] = []
    for name, size in sorted(checkpoint.files.items(), key=lambda item: -item[1]):
        per = f"{size / num_parameters:.1f}" if num_parameters and name.endswith(".safetensors") else ""
        rows.append((name, content_of(name), _short(size / 1e6), _short(size / 2**20), per))
    total = checkpoint.num_bytes
    rows.append(("all files", "", _short(total / 1e6), _short(total / 2**20), ""))
    return Table(("File", "What it holds", "MB", "MiB", "Bytes per parameter"), rows, num_text=2, has_total=True)


def _short(value: float) -> str:
    """Tiny files keep a digit that is not zero; large ones need no decimals of a megabyte but one."""
    return f"{value:,.1f}" if value >= 10 else f"{value:.4f}"


def checkpoint_table(checkpoints: Sequence[CheckpointSize]) -> Table:
    rows = [(item.name, ", ".join(item.pointers), format_bytes_both(item.num_bytes)) for item in checkpoints]
    return Table(("Checkpoint", "Also called", "Size"), rows, num_text=2)


def attempt_table(summary: Summary) -> Table:
    columns = ("Attempt", "Began", "How it ended", "Ranks", "Steps", "Took", "Done again later")
    rows: list[tuple[str, ...]] = []
    for span in summary.attempts:
        steps = f"{span.first_step:,} to {span.last_step:,}" if span.first_step and span.last_step else "none"
        lost = (
            f"{span.num_lost_steps:,} steps, {format_seconds(span.lost_seconds)}" if span.num_lost_steps else "nothing"
        )
        ranks = str(span.world_size) if span.world_size else ""
        ending = f"{span.ending}: {reason_words(span.reason)}" if span.reason else span.ending
        took = format_seconds(span.seconds)
        rows.append(
            (
                str(span.attempt),
                moment(span.start),
                ending,
                ranks,
                steps,
                took,
                lost,
            )
        )
    return Table(columns, rows, num_text=3)


def settings(manifest: Manifest) -> list[Setting]:
    """Every setting with its meaning; the ones that differ from the defaults are marked."""
    known = {key: (default, meaning) for key, _, default, meaning in recipe_fields()}
    found: list[Setting] = []
    for key, value in _flatten(manifest.recipe):
        default, meaning = known.get(key, ("", ""))
        text = json.dumps(value, ensure_ascii=False)
        found.append(Setting(key, text, meaning, text != default and "." in key))
    return found


def _flatten(recipe: dict[str, object]) -> Iterator[tuple[str, object]]:
    for section, values in recipe.items():
        if isinstance(values, dict):
            yield from ((f"{section}.{key}", value) for key, value in values.items())
        else:
            yield section, values


def provenance(run: RunRecord, summary: Summary) -> list[tuple[str, str]]:
    manifest = run.manifest
    facts = [(name, version) for name, version in manifest.versions.items()]
    facts += [
        ("code commit", manifest.git_commit or NOT_RECORDED),
        ("recipe hash", manifest.recipe_hash),
        ("data fingerprint", manifest.data.fingerprint),
        ("data folder", manifest.data.path),
        ("seeds", _seeds(manifest)),
    ]
    if manifest.num_microbatches:
        facts.append(("microbatches a step", str(manifest.num_microbatches)))
    best = summary.best_bleu
    if best is not None:
        facts += [
            ("BLEU", best.bleu_signature or NOT_RECORDED),
            ("chrF", best.chrf_signature or NOT_RECORDED),
        ]
    if manifest.price_per_hour is not None:
        facts.append(("price per hour", f"{manifest.price_per_hour:g} {manifest.currency or ''}".strip()))
    return facts


def _seeds(manifest: Manifest) -> str:
    named = (("training", "train"), ("data", "data"))
    known = [(name, recipe_value(manifest, section, "seed")) for name, section in named]
    return ", ".join(f"{name} {seed}" for name, seed in known if seed is not None) or NOT_RECORDED
