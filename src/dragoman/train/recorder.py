"""Everything a run says of itself, in one place: records, TensorBoard, the screen. Never raises into training."""

import time
from collections import deque

from dragoman.data.batches import BatchPlan, StepPlan
from dragoman.dist.world import World
from dragoman.run.folder import Pointer
from dragoman.run.records import Manifest, StepRecord, TimingRecord
from dragoman.run.tensorboard import TensorBoardWriter
from dragoman.run.writer import RunWriter, write_manifest
from dragoman.train.card import CardCounter
from dragoman.train.console import Console
from dragoman.train.job import Job
from dragoman.train.progress import Progress
from dragoman.train.validate import Evaluation
from dragoman.units import format_bytes_both, format_count, format_seconds

SAMPLE_WIDTH = 160  # an untrained model may repeat a word for ever


class Recorder:
    """Rank 0 speaks for the run; every rank records its own times."""

    def __init__(self, job: Job, world: World, first_step: int) -> None:
        self._job = job
        self._world = world
        self._log_every = job.recipe.train.log_every
        self._num_samples = job.recipe.evaluate.num_samples
        self._writer = RunWriter(job.folder, job.attempt)
        self._console = Console(job.folder.log_path if world.is_first else None, job.recipe.train.max_steps)
        self._scalars = TensorBoardWriter(job.folder, first_step) if world.is_first else None
        self._card = CardCounter(is_reader=world.local_rank == 0)
        self._sent_bytes = 0
        self._untold: deque[tuple[StepPlan, float, float, float, float]] = deque()

    def start(self, manifest: Manifest, plan: BatchPlan, progress: Progress, notes: list[str]) -> None:
        """The manifest, and a few lines on what begins."""
        if not self._world.is_first:
            return
        write_manifest(self._job.folder, manifest)
        recipe, say = self._job.recipe, self._console.say
        kind = "resumed" if progress.step else "started"
        self._writer.write_event(kind, progress.step, world_size=self._world.size, device=manifest.device)
        say(
            f"{manifest.name}: recipe {recipe.name}, {manifest.data.languages}, "
            f"{format_count(manifest.num_parameters)} parameters, {self._world.size} x {manifest.device} "
            f"({manifest.precision}), {plan.num_pairs:,} pairs, {plan.steps_per_epoch:,} steps an epoch"
        )
        if plan.num_too_long:
            notes = [*notes, f"{plan.num_too_long:,} pairs are longer than batch.max_pieces and not trained on"]
        if manifest.exchange is not None and manifest.exchange.num_hosts > 1:
            for reason in manifest.exchange.reasons:
                say(reason)
        if progress.step:
            say(f"going on from step {progress.step:,}")
        for note in notes:
            self.warn(progress.step, note)

    def warn(self, step: int, text: str) -> None:
        if self._world.is_first:
            self._writer.write_event("warning", step, text=text)
            self._console.say(f"warning: {text}")

    def step(self, plan: StepPlan, rate: float, norm: float, seconds: dict[str, float], sent_bytes: int) -> None:
        """One update and where its time went; `seconds` as the meter gives them, `sent_bytes` of the run so far."""
        now = time.time()
        parts = {f"{name}_seconds": value for name, value in seconds.items()}
        sent, self._sent_bytes = sent_bytes - self._sent_bytes, sent_bytes
        place = (self._job.attempt, now, plan.step, self._world.rank, self._world.host)
        self._writer.write(
            TimingRecord(*place, **parts, sent_bytes=sent, card_sent_bytes=self._card.take())  # type: ignore[arg-type]
        )
        self._untold.append((plan, rate, norm, now, seconds["wall"] - seconds["validation"] - seconds["checkpoint"]))

    def told(self, loss_sum: float, nll_sum: float) -> None:
        """The oldest update whose losses were unknown, now that all ranks' have arrived."""
        plan, rate, norm, now, step_seconds = self._untold.popleft()
        if not self._world.is_first:
            return
        record = StepRecord(
            attempt=self._job.attempt,
            time=now,
            step=plan.step,
            loss=loss_sum / plan.target_tokens,
            nll=nll_sum / plan.target_tokens,
            learning_rate=rate,
            gradient_norm=norm,
            source_tokens=plan.source_tokens,
            target_tokens=plan.target_tokens,
            num_sentences=plan.num_sentences,
            step_seconds=step_seconds,
        )
        self._writer.write(record)
        self._console.step(record)
        if self._scalars is not None and plan.step % self._log_every == 0:
            self._scalars.write_step(record)

    def evaluation(self, step: int, evaluations: list[Evaluation], gains: list[Pointer]) -> None:
        """Scores, every hypothesis, and a few samples on the screen."""
        if not self._world.is_first or self._scalars is None:
            return
        for evaluation in evaluations:
            self._writer.write(evaluation.record)
            self._writer.write_sentences(step, evaluation.record.dev_set, evaluation.sentences)
            self._scalars.write_eval(evaluation.record)
            self._console.evaluation(evaluation.record)
        for pointer in gains:
            self._writer.write_event("best", step, pointer=pointer)
        decoded = [s for e in evaluations for s in e.sentences if s.hypothesis is not None]
        for sentence in decoded[: min(self._num_samples, 2)]:
            line = f"{sentence.source}  ->  {sentence.hypothesis}"
            self._console.say(f"    {line[:SAMPLE_WIDTH]}")

    def checkpoint(self, step: int, files: dict[str, int]) -> None:
        if self._world.is_first:
            self._writer.write_event("checkpoint", step, files=files)

    def end(self, progress: Progress, reason: str) -> None:
        """Close everything; what is queued is written."""
        if self._world.is_first:
            kind = "stopped" if reason == "interrupted" else "finished"
            self._writer.write_event(kind, progress.step, reason=reason)
            self._console.say(
                f"{kind} at step {progress.step:,} ({reason}), trained for "
                f"{format_seconds(progress.trained_seconds)}, {format_count(progress.target_tokens)} target tokens"
            )
            last = self._job.folder.checkpoints_path / "last"
            if last.exists():
                size = sum(path.stat().st_size for path in last.iterdir())
                self._console.say(f"checkpoint {last.resolve().name}: {format_bytes_both(size)}")
        if self._scalars is not None:
            self._scalars.close()
        self._writer.close()
