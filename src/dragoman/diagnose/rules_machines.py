"""Findings on data, machines and what is not training: rejects, a leak, validation, checkpoints, throttling, memory."""

import numpy as np

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import Finding
from dragoman.diagnose.link import is_training
from dragoman.diagnose.remedies import worth_of
from dragoman.diagnose.statistics import Floats, finite_median
from dragoman.diagnose.wording import percent
from dragoman.units import format_seconds, plural

MANY_REJECTS = 0.3
MIN_PAIRS = 1_000
# Deduplication and weights leave pairs out on purpose; they say nothing bad about the rest.
HARMLESS_REJECTS = ("duplicate", "weight", "overlap")
VALIDATION_SHARE, VALIDATION_SECONDS = 0.25, 300.0
CHECKPOINT_SHARE, CHECKPOINT_SECONDS = 0.10, 120.0
MIN_SAMPLES = 20
THROTTLED_SHARE = 0.2
SLOW_CLOCK = 0.85
GPU_FULL, HOST_FULL = 0.97, 0.95


def many_rejects(facts: Facts) -> Finding | None:
    data = facts.run.manifest.data
    rejected = {name: number for name, number in data.rejected.items() if name not in HARMLESS_REJECTS and number > 0}
    total = sum(rejected.values())
    if data.num_pairs <= 0 or total + data.num_pairs < MIN_PAIRS or total < MANY_REJECTS * (total + data.num_pairs):
        return None
    reason, number = max(rejected.items(), key=lambda item: item[1])
    return Finding(
        "many-rejects",
        "Cleaning left out much of the text",
        "warning",
        f"{plural(total, 'pair')} of {total + data.num_pairs:,} ({percent(total / (total + data.num_pairs))}) were "
        f"left out, most of them ({number:,}) as {reason}.",
        "Look at the samples of rejects that `dragoman prepare` keeps: either the text is poor, or a filter of the "
        "recipe does not fit it.",
    )


def dev_leak(facts: Facts) -> Finding | None:
    last, data = facts.learning.last, facts.run.manifest.data
    if last is not None and last.train_loss is not None and len(facts.learning.evals) >= 3:
        recent = facts.learning.evals[-3:]
        is_low = all(record.train_loss is not None and record.loss < 0.6 * record.train_loss for record in recent)
        if is_low and last.train_loss > 0.2:
            return Finding(
                "dev-leak",
                "The dev set may be in the training set",
                "warning",
                f"The dev loss, {last.loss:.3f} nats per token, lies far below the loss on training pairs, "
                f"{last.train_loss:.3f}, measured alike.",
                "Look for dev sentences in the training text; if the dev set is just easier, its score flatters.",
            )
    if data.removes_overlap or not data.dev_sets:
        return None
    return Finding(
        "dev-leak",
        "Dev and test pairs were not taken out of the training set",
        "note",
        f"The data was prepared with data.remove_overlap = false; {plural(sum(data.dev_sets.values()), 'dev pair')} "
        "may be among the training pairs.",
        "Prepare the data with data.remove_overlap = true, unless a published run is to be repeated.",
    )


def validation_heavy(facts: Facts) -> Finding | None:
    if facts.split is None or facts.split.wall_seconds <= 0:
        return None
    seconds, whole = facts.split.validation_seconds, facts.split.wall_seconds
    if seconds < max(VALIDATION_SECONDS, VALIDATION_SHARE * whole):
        return None
    return Finding(
        "validation-heavy",
        "Validation eats the time",
        "warning",
        f"Evaluations took {format_seconds(seconds)}, {percent(seconds / whole)} of the run.",
        "Raise evaluate.every_steps, or lower evaluate.max_decoded: translating the dev set is the slow part.",
        f"Half as many evaluations save {worth_of(facts, seconds / 2)}.",
    )


def checkpoint_heavy(facts: Facts) -> Finding | None:
    if facts.split is None or facts.split.wall_seconds <= 0:
        return None
    seconds, whole = facts.split.checkpoint_seconds, facts.split.wall_seconds
    if seconds < max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * whole):
        return None
    return Finding(
        "checkpoint-heavy",
        "Saving checkpoints eats the time",
        "warning",
        f"Checkpoints took {format_seconds(seconds)}, {percent(seconds / whole)} of the run.",
        "Raise checkpoint.every_steps and checkpoint.every_minutes, or put the run folder on a faster disk.",
        f"Half as many checkpoints save {worth_of(facts, seconds / 2)}.",
    )


def gpu_throttled(facts: Facts) -> Finding | None:
    for host in facts.hosts:
        is_counted = is_training(host.time, facts.grid) if facts.grid else np.ones(len(host.time), dtype=bool)
        throttled = host.gpu_throttled[is_counted]
        clock = finite_median(host.gpu_clock_share[is_counted][throttled])
        if int(is_counted.sum()) < MIN_SAMPLES or throttled.mean() < THROTTLED_SHARE:
            continue
        # A power cap that hardly moves the clock is how modern cards work at full load.
        if clock is not None and clock >= SLOW_CLOCK:
            continue
        reasons = ", ".join(name for name, _ in host.throttle_reasons.most_common(2))
        at = f" at {percent(clock)} of the full clock" if clock is not None else ""
        return Finding(
            "gpu-throttled",
            f"GPUs of {host.host} are throttled",
            "warning",
            f"In {percent(float(throttled.mean()))} of the seconds a GPU of {host.host} ran{at} ({reasons}).",
            "Check cooling, power cap and power supply of that host; rented machines can be exchanged.",
            f"Up to {percent(1 - clock)} less time for computing." if clock is not None else "",
        )
    return None


def memory_full(facts: Facts) -> Finding | None:
    for host in facts.hosts:
        gpu, own = _usual_peak(host.gpu_memory_share), _usual_peak(host.memory_share)
        if gpu >= GPU_FULL or own >= HOST_FULL:
            what, share = ("GPU memory", gpu) if gpu >= GPU_FULL else ("memory", own)
            return Finding(
                "memory-full",
                f"The {what} of {host.host} is nearly full",
                "warning",
                f"{percent(share)} of the {what} of {host.host} was in use in the fullest tenth of the run.",
                f"Raise batch.num_microbatches{_doubled(facts)}: smaller pieces need less memory and do the same."
                if gpu >= GPU_FULL
                else "Look at what else runs there; a host out of memory kills its workers.",
                "A longer sentence than any so far may end the run.",
            )
    return None


def _doubled(facts: Facts) -> str:
    """Whoever left the number open does not know it."""
    number = facts.run.manifest.num_microbatches
    return f" from {number} to {2 * number}" if number else ""


def _usual_peak(shares: Floats) -> float:
    """What the fullest tenth of the samples lies above."""
    finite = shares[np.isfinite(shares)]
    return float(np.quantile(finite, 0.9)) if len(finite) >= MIN_SAMPLES else 0.0
