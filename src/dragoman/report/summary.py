"""The figures of a run that a page or a script wants, as plain numbers with units in their names.

Part of what `report --format json` writes. No formatting and no verdicts.
"""

import math
from dataclasses import dataclass
from typing import Any

from dragoman.diagnose.facts import Facts
from dragoman.report.series import Share, time_shares
from dragoman.run.figures import (
    AttemptSpan,
    Ending,
    best_by_bleu,
    best_by_loss,
    mean_step_seconds,
    median_step_seconds,
    target_tokens_per_second,
)
from dragoman.run.folder import AVERAGE
from dragoman.run.reader import RunRecord
from dragoman.run.records import WRONG_NUMBERS, EvalRecord, Manifest

SYNTHETIC_CORPUS = "phrasebook"


@dataclass(frozen=True)
class CheckpointSize:
    """A checkpoint's files with their bytes: from disk, or from the event of its writing."""

    name: str
    files: dict[str, int]
    pointers: tuple[str, ...]
    is_on_disk: bool

    @property
    def num_bytes(self) -> int:
        return sum(self.files.values())


@dataclass(frozen=True)
class Summary:
    """Everything countable about a run; None where it was not recorded."""

    ending: Ending
    reason: str
    duration_seconds: float
    num_steps: int
    max_steps: int | None
    num_epochs: float | None
    num_lost_steps: int
    lost_seconds: float
    mean_step_seconds: float | None
    median_step_seconds: float | None
    target_tokens_per_second: float | None
    num_target_tokens: int
    num_nan_steps: int
    first_nan_step: int | None
    best_loss: EvalRecord | None
    best_bleu: EvalRecord | None
    last_eval: EvalRecord | None
    num_evals: int
    time_shares: list[Share]
    attempts: list[AttemptSpan]
    checkpoints: list[CheckpointSize]
    is_synthetic: bool
    warnings: list[str]
    num_bad_lines: dict[str, int]

    @property
    def newest_checkpoint(self) -> CheckpointSize | None:
        """One that training could go on from; an average holds weights alone."""
        whole = [item for item in self.checkpoints if item.name != AVERAGE]
        return next(iter(whole or self.checkpoints), None)


def summarize(facts: Facts) -> Summary:
    run, spans = facts.run, list(facts.spans)
    evals = run.evals_of(run.dev_sets[0]) if run.dev_sets else []
    not_numbers = [step.step for step in run.steps if not math.isfinite(step.loss)]
    num_pairs = run.manifest.data.num_pairs
    num_sentences = sum(step.num_sentences for step in run.steps)
    return Summary(
        ending=spans[-1].ending if spans else "cut off",
        reason=spans[-1].reason if spans else "",
        duration_seconds=sum(span.seconds for span in spans),
        num_steps=run.steps[-1].step if run.steps else 0,
        max_steps=recipe_value(run.manifest, "train", "max_steps"),
        num_epochs=num_sentences / num_pairs if num_pairs and run.steps else None,
        num_lost_steps=len(run.lost_steps),
        lost_seconds=sum(span.lost_seconds for span in spans),
        mean_step_seconds=mean_step_seconds(run),
        median_step_seconds=median_step_seconds(run),
        target_tokens_per_second=target_tokens_per_second(run),
        num_target_tokens=sum(step.target_tokens for step in run.steps),
        num_nan_steps=len(not_numbers),
        first_nan_step=not_numbers[0] if not_numbers else None,
        best_loss=best_by_loss(evals),
        best_bleu=best_by_bleu(evals),
        last_eval=evals[-1] if evals else None,
        num_evals=len(evals),
        time_shares=time_shares(facts.grid, facts.split),
        attempts=spans,
        checkpoints=_checkpoints(run),
        is_synthetic=is_synthetic(run.manifest),
        warnings=_warnings(run),
        num_bad_lines=dict(run.num_bad_lines),
    )


def is_synthetic(manifest: Manifest) -> bool:
    named = recipe_value(manifest, "data", "corpora") or []
    return SYNTHETIC_CORPUS in named or SYNTHETIC_CORPUS in manifest.data.corpora


def recipe_value(manifest: Manifest, section: str, key: str) -> Any:
    """A setting as the run recorded it; None where that version had none."""
    values = manifest.recipe.get(section)
    return values.get(key) if isinstance(values, dict) else None


def _checkpoints(run: RunRecord) -> list[CheckpointSize]:
    """Newest first. Where none is on disk (a run fetched without), the last event of one speaks."""
    found = [
        CheckpointSize(item.name, {file.name: file.num_bytes for file in item.files}, item.pointers, True)
        for item in reversed(run.checkpoints)
    ]
    if found:
        return found
    for event in reversed(run.events_of("checkpoint")):
        files = event.detail.get("files")
        if isinstance(files, dict) and all(isinstance(size, int) for size in files.values()):
            return [CheckpointSize(f"step {event.step:,}", files, (), False)]
    return []


def _warnings(run: RunRecord) -> list[str]:
    """What training warned of, each once."""
    texts = [event.detail.get("text") for event in run.events if event.kind in ("warning", *WRONG_NUMBERS)]
    return list(dict.fromkeys(text for text in texts if isinstance(text, str)))
