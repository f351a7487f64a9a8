"""The top of the page beside its three lines: title, notices and key figures, in words. Knows no HTML."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.report.summary import Summary
from dragoman.run.figures import REASONS
from dragoman.run.reader import RunRecord
from dragoman.run.records import Manifest
from dragoman.units import format_bytes, format_count, format_seconds

LANGUAGES = {
    "ar": "Arabic", "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "et": "Estonian", "fi": "Finnish", "fr": "French",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
MAX_WARNINGS = 5
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Tile:
    """One key figure: what, how much, and a line of context."""

    label: str
    value: str
    detail: str
    code: str = ""


def language_pair(languages: str) -> str:
    source, _, target = languages.partition("-")
    return f"{LANGUAGES.get(source, source)} to {LANGUAGES.get(target, target)}"


def moment(unix_seconds: float) -> str:
    """In UTC, because a run may be read far from where it was made."""
    try:
        return time.strftime("%d %b %Y, %H:%M UTC", time.gmtime(unix_seconds)).lstrip("0")
    except (ValueError, OverflowError, OSError):
        return NOT_RECORDED


def machines(manifest: Manifest) -> str:
    """'2 ranks on anna (2 cores, AMD EPYC, 24 GB), fp32'."""
    hosts: list[str] = []
    for host in manifest.hosts:
        parts = [f"{host.num_cores} cores" if host.num_cores else "", host.cpu, _gpus(host.gpus)]
        parts.append(f"{format_bytes(host.memory_bytes)} memory" if host.memory_bytes else "")
        hosts.append(f"{host.name} ({', '.join(part for part in parts if part)})")
    ranks = f"{manifest.world_size} rank{'s' if manifest.world_size != 1 else ''}"
    where = f" on {'; '.join(hosts)}" if hosts else ""
    return f"{ranks}{where}, {manifest.device}, {manifest.precision}"


def _gpus(gpus: Sequence[str]) -> str:
    return ", ".join(f"{gpus.count(name)} × {name}" for name in dict.fromkeys(gpus))


def state_line(summary: Summary) -> str:
    steps = "1 step" if summary.num_steps == 1 else f"{summary.num_steps:,} steps"
    if summary.ending != "cut off":
        reason = reason_words(summary.reason)
        return f"{summary.ending.capitalize()} after {steps}{f': {reason}' if reason else ''}."
    return f"No end is recorded after {steps}: the run goes on, or it was cut off."


def reason_words(reason: str) -> str:
    return REASONS.get(reason, reason)


def notices(run: RunRecord, summary: Summary) -> list[str]:
    """What a reader must know before the figures."""
    found: list[str] = []
    if summary.is_synthetic:
        found.append(
            "The model learned from the embedded phrasebook: synthetic sentences made by a grammar. "
            "Its scores show that training works and are not comparable with any published score."
        )
    if summary.num_nan_steps:
        found.append(
            f"{summary.num_nan_steps:,} steps have a loss that is not a number, the first at step "
            f"{summary.first_nan_step:,}; they are gaps in the curves."
        )
    found += [f"Training warned: {text}" for text in summary.warnings[:MAX_WARNINGS]]
    if summary.num_bad_lines:
        files = ", ".join(f"{name} ({count:,})" for name, count in sorted(summary.num_bad_lines.items()))
        found.append(f"Lines that could not be read were skipped: {files}. A kill may tear the last line of a file.")
    if not run.steps:
        found.append("No step is recorded yet.")
    return found


def main_tiles(summary: Summary) -> list[Tile]:
    return [_bleu_tile(summary), _loss_tile(summary), _duration_tile(summary), _speed_tile(summary)]


def _bleu_tile(summary: Summary) -> Tile:
    best = summary.best_bleu
    if best is None or best.bleu is None:
        return Tile("Best BLEU", "–", "no evaluation was decoded")
    detail = f"on {best.num_decoded:,} sentences of {best.dev_set}, at step {best.step:,}"
    return Tile("Best BLEU", f"{best.bleu:.1f}", detail, best.bleu_signature or "")


def _loss_tile(summary: Summary) -> Tile:
    best = summary.best_loss
    if best is None:
        return Tile("Best dev loss", "–", "no evaluation is recorded")
    perplexity = f"{math.exp(best.loss):,.3g}" if best.loss < 100 else "huge"
    detail = f"nats per token, perplexity {perplexity}, at step {best.step:,}"
    return Tile("Best dev loss", f"{best.loss:.3f}", detail)


def _duration_tile(summary: Summary) -> Tile:
    if not summary.attempts:
        return Tile("Duration", "–", NOT_RECORDED)
    num = len(summary.attempts)
    detail = "in one go" if num == 1 else f"in {num} attempts, the gaps between them left out"
    return Tile("Duration", format_seconds(summary.duration_seconds), detail)


def _speed_tile(summary: Summary) -> Tile:
    rate = summary.target_tokens_per_second
    if rate is None:
        return Tile("Speed", "–", NOT_RECORDED)
    return Tile("Speed", f"{rate:,.0f}", "target tokens per second while training, all ranks together")


def other_tiles(manifest: Manifest, summary: Summary) -> list[Tile]:
    planned = f"of {summary.max_steps:,} planned" if summary.max_steps else ""
    epochs = f"{summary.num_epochs:.3g} passes over the data" if summary.num_epochs is not None else ""
    steps = Tile("Steps", f"{summary.num_steps:,}", ", ".join(part for part in (planned, epochs) if part))
    return [
        steps,
        _step_time_tile(summary),
        _data_tile(manifest),
        Tile("Parameters", format_count(manifest.num_parameters), f"{manifest.num_parameters:,} in all"),
        _checkpoint_tile(summary),
    ]


def _step_time_tile(summary: Summary) -> Tile:
    median, mean = summary.median_step_seconds, summary.mean_step_seconds
    if median is None or mean is None or median <= 0:
        return Tile("Step time", "–", NOT_RECORDED)
    return Tile("Step time", f"{median:#.3g} s/step", f"median; {1 / median:#.3g} steps/s; mean {mean:#.3g} s")


def _data_tile(manifest: Manifest) -> Tile:
    data = manifest.data
    num_bytes = data.source.clean_bytes + data.target.clean_bytes
    if not num_bytes:
        return Tile("Training set", "–", f"{data.num_pairs:,} pairs of lines; their bytes are {NOT_RECORDED}")
    return Tile(
        "Training set",
        f"{num_bytes / 1e6:,.1f} MB",
        f"{data.num_pairs:,} pairs of lines, both sides, cleaned",
    )


def _checkpoint_tile(summary: Summary) -> Tile:
    newest = summary.newest_checkpoint
    if newest is None:
        return Tile("Checkpoint", "–", "none is recorded")
    mib = f"{newest.num_bytes / 2**20:,.1f} MiB"
    return Tile("Checkpoint", f"{newest.num_bytes / 1e6:,.1f} MB", f"the same as {mib}, in {len(newest.files)} files")
