"""What a run takes from the first download to the last save, stage by stage, each with how it is known."""

import math

from dragoman.model.fused.decoding.room import MOST_ROWS, MOST_TOKENS
from dragoman.model.size import EVALUATION_TOKENS
from dragoman.plan.checkpoint import num_saves
from dragoman.plan.setting import USUAL_DISK_RATE, Setting
from dragoman.plan.split import StepPlan, train_seconds
from dragoman.run.promise import Stage
from dragoman.units import format_bytes

DOWNLOAD_RATE = 10e6  # bytes a second from the corpora's servers
PUSH_RATE = 12.5e6  # bytes a second out of the place where the data folder lies
PREPARE_PAIRS_PER_SECOND, VOCAB_SECONDS = 50_000, 15.0  # two cores; docs/benchmarks.md
HASH_RATE = 1e9  # bytes a second, of a file that was just written
# Of a GPU, however few sentences are left: by torch's own operations, and by the fused decoder. For the latter an H200
# took 0.457 s (benchmarks/results/2026-11-16-decode-gpu.jsonl), which were 6 batches of base, 316 steps in all.
DECODE_STEP_SECONDS, FUSED_STEP_SECONDS = 0.004, 0.457 / 316
FETCH_STAGES = ("fetch", "download")


def plan_timeline(setting: Setting, step: StepPlan, checkpoint_bytes: int) -> tuple[Stage, ...]:
    """Stages in order."""
    return (
        *_preparation(setting),
        Stage("train", train_seconds(setting, step), _how(setting)),
        _evaluation(setting),
        _saving(setting, step, checkpoint_bytes),
    )


def paid_seconds(timeline: tuple[Stage, ...]) -> float:
    """The stages for which the training machines must be rented."""
    return sum(stage.seconds for stage in timeline if stage.name not in ("download", "prepare"))


def num_evaluations(setting: Setting) -> int:
    """The last step is always one."""
    return math.ceil(setting.num_steps / setting.recipe.evaluate.every_steps)


def _preparation(setting: Setting) -> list[Stage]:
    text = setting.text
    if text.is_known:
        fetched = sum(text.stage_seconds.get(name, 0.0) for name in FETCH_STAGES)
        stages = [
            Stage("download", fetched, "known from the data folder: done"),
            Stage("prepare", sum(text.stage_seconds.values()) - fetched, "known from the data folder: done"),
        ]
    elif text.num_pairs:
        seconds = text.num_pairs / PREPARE_PAIRS_PER_SECOND + VOCAB_SECONDS
        stages = [
            Stage(
                "download",
                text.download_bytes / DOWNLOAD_RATE,
                f"estimated: {format_bytes(text.download_bytes)} at {format_bytes(DOWNLOAD_RATE)}/s",
            ),
            Stage("prepare", seconds, f"estimated: {text.num_pairs:,} pairs on two cores"),
        ]
    else:
        stages = []
    if text.num_pairs and (setting.placement.num_hosts > 1 or not setting.is_measured):
        num_bytes = setting.placement.num_hosts * text.folder_bytes
        how = f"estimated: {format_bytes(num_bytes)} at {format_bytes(PUSH_RATE)}/s"
        stages.append(Stage("push", num_bytes / PUSH_RATE, how))
    return stages


def _evaluation(setting: Setting) -> Stage:
    """Losses of dev and training pairs, and greedy translations, shared out over the ranks."""
    config, batch, compute = setting.recipe.evaluate, setting.recipe.batch, setting.compute.middle
    ranks = setting.placement.num_ranks
    token_seconds = compute.forward_seconds * batch.num_microbatches / batch.target_tokens
    per_pair = setting.text.tokens_per_pair
    scored = (setting.text.num_dev_pairs + config.train_pairs) * per_pair * token_seconds / ranks
    decoded = min(config.max_decoded, setting.text.num_dev_pairs) if config.decode else 0
    slowest = _stepping_seconds(setting, decoded / ranks) if setting.is_gpu else 0.0
    decoding = max(decoded * per_pair * config.beam * token_seconds / ranks, slowest)
    count = num_evaluations(setting)
    return Stage("evaluate", count * (scored + decoding), f"estimated: {count:,} times")


def _stepping_seconds(setting: Setting, sentences: float) -> float:
    """What a GPU's decoder takes for its steps. The longest sentence of a batch has about twice the mean."""
    per_pair, beam = setting.text.tokens_per_pair, setting.recipe.evaluate.beam
    if setting.compute.middle.kernels == "fused":
        batches = math.ceil(sentences * max(beam / MOST_ROWS, per_pair / MOST_TOKENS))
        return batches * 2 * per_pair * FUSED_STEP_SECONDS
    batches = math.ceil(sentences * per_pair * beam / EVALUATION_TOKENS)
    return batches * 2 * per_pair * DECODE_STEP_SECONDS


def _saving(setting: Setting, step: StepPlan, checkpoint_bytes: int) -> Stage:
    count = num_saves(setting, step.split.total_seconds)
    rate = setting.disk_bytes_per_second
    seconds = count * checkpoint_bytes * (1 / rate + 1 / HASH_RATE)
    is_guess = rate == USUAL_DISK_RATE
    how = f"{count:,} times {format_bytes(checkpoint_bytes)} at {format_bytes(rate)}/s"
    return Stage("save", seconds, ("estimated: " if is_guess else "measured disk: ") + how)


def _how(setting: Setting) -> str:
    return f"{setting.num_steps:,} steps, {'measured' if setting.is_measured else 'estimated'}"
