"""Everything a run says of itself, in one place: records, TensorBoard, the screen. Never raises into training."""

import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from dragoman.data.batches import BatchPlan, StepPlan
from dragoman.dist.card import CardCounter
from dragoman.dist.clock import clock_offsets
from dragoman.dist.sync import Totals
from dragoman.dist.world import World
from dragoman.run.folder import Pointer
from dragoman.run.notices import VARIABLE, Notices
from dragoman.run.reader import read_manifest
from dragoman.run.records import EventKind, Manifest, StepRecord, TimingRecord
from dragoman.run.tensorboard import TensorBoardWriter
from dragoman.run.writer import RunWriter, write_manifest
from dragoman.train.changes import Change, changed_settings, rate_note
from dragoman.train.checkpoint import Saved
from dragoman.train.console import Console
from dragoman.train.findings import Findings
from dragoman.train.job import Job
from dragoman.train.meter import StepTimes
from dragoman.train.numbers import LEFT_OUT, Spikes, origin_of
from dragoman.train.progress import Progress
from dragoman.train.sampler import Sampler
from dragoman.train.stop import UNFINISHED
from dragoman.train.validate import Evaluation
from dragoman.units import format_bytes_both, format_count, format_seconds, plural

DECIMALS = 6  # microseconds; more digits would double the largest files of a run
# Before that a run has nothing to say, and one that ends at once should not wait for it.
FINDINGS_FROM_STEPS, FINDINGS_FROM_SECONDS = 20, 5.0
SAMPLE_WIDTH = 160  # an untrained model may repeat a word for ever


@dataclass
class _Update:
    """A step of which not everything is known yet: its times, the losses of all ranks."""

    plan: StepPlan
    rate: float
    norm: torch.Tensor  # on the host, but filled in no earlier than the times are known
    sent_bytes: int
    card_sent_bytes: int | None
    times: StepTimes | None = None


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
        address = os.environ.get(VARIABLE) if world.is_first else None
        self._notices = Notices(address, job.run.name, world.host, lambda text: self.warn(self._last_step, text))
        self._card = CardCounter(is_reader=world.local_rank == 0)
        self._sent_bytes = 0
        self._untimed: deque[_Update] = deque()
        self._untold: deque[_Update] = deque()
        self._totals: deque[Totals] = deque()
        self._spikes = Spikes()
        self._findings: Findings | None = None
        self._num_steps, self._last_step, self._started = 0, 0, time.monotonic()
        self._sampler: Sampler | None = None
        if world.local_rank == 0:
            self._sampler = Sampler(job.attempt, world.host, job.folder.path, self._writer.write)

    def start(self, manifest: Manifest, plan: BatchPlan, progress: Progress, notes: list[str]) -> None:
        """The manifest, and a few lines on what begins."""
        changes = self._changes()
        if self._world.local_rank == 0:  # on every host: each of them may have to go on alone
            write_manifest(self._job.folder, manifest)
        if not self._world.is_first:
            return
        recipe, say = self._job.recipe, self._console.say
        kind = "resumed" if progress.step else "started"
        hosts = [host.name for host in manifest.hosts]
        self._writer.write_event(kind, progress.step, world_size=self._world.size, device=manifest.device, hosts=hosts)
        self._notices.step = progress.step
        where = f" at step {progress.step:,}" if progress.step else ""
        self._notices.tell("started", f"{kind}{where}: recipe {recipe.name}, {self._world.size} x {manifest.device}")
        say(
            f"{manifest.name}: recipe {recipe.name}, {manifest.data.languages}, "
            f"{format_count(manifest.num_parameters)} parameters, {self._world.size} x {manifest.device} "
            f"({manifest.precision}), {plan.num_pairs:,} pairs, {plan.steps_per_epoch:,} steps an epoch"
        )
        if recipe.batch.num_microbatches == "auto":
            number = plan.config.num_microbatches
            tokens = plan.config.target_tokens // number
            say(f"a step is {plural(number, 'microbatch')} of {tokens:,} target tokens")
        if plan.num_too_long:
            left_out = plural(plan.num_too_long, "pair")
            notes = [*notes, f"left out: {left_out} with more than {recipe.batch.max_pieces} pieces (batch.max_pieces)"]
        if manifest.exchange is not None and manifest.exchange.num_hosts > 1:
            for reason in manifest.exchange.reasons:
                say(reason)
        if progress.step:
            say(f"going on from step {progress.step:,}")
        for change in changes:
            self._writer.write_event("changed", progress.step, **asdict(change))
            say(str(change))
        rate = rate_note(changes, recipe, progress.step)
        for note in [*notes, *([rate] if rate else [])]:
            self.warn(progress.step, note)

    def _changes(self) -> list[Change]:
        """Against the manifest that is there still; the first attempt has changed nothing."""
        folder = self._job.folder
        return changed_settings(read_manifest(folder).recipe, self._job.recipe) if folder.manifest_path.exists() else []

    def say(self, text: str) -> None:
        """A line for the person who watches, and for the log."""
        self._console.say(text)

    def warn(self, step: int, text: str) -> None:
        if self._world.is_first:
            self._writer.write_event("warning", step, text=text)
            self._console.say(f"warning: {text}")

    def clocks(self, step: int) -> None:
        """How far the hosts' clocks are apart now. All ranks call this together."""
        offsets = clock_offsets(self._world)
        if self._world.is_first and len(offsets) > 1:
            self._writer.write_event("clocks", step, offsets=offsets)

    def step(self, plan: StepPlan, rate: float, norm: torch.Tensor, sent_bytes: int) -> None:
        """One update; `sent_bytes` of the run so far. Its times and losses follow, each in the order of steps."""
        sent, self._sent_bytes = sent_bytes - self._sent_bytes, sent_bytes
        update = _Update(plan, rate, norm, sent, self._card.take())
        self._untimed.append(update)
        self._untold.append(update)

    def catch_up(self, times: Iterable[StepTimes], arrived: Iterable[Totals]) -> None:
        """What has become known of the oldest updates: where their time went, and the sums of all ranks."""
        for one in times:
            self._timed(one)
        for totals in arrived:
            self._told(totals)

    def _timed(self, times: StepTimes) -> None:
        """Where the time of the oldest update went whose times were unknown."""
        update = self._untimed.popleft()
        update.times = times
        start = times.exchange_start
        place = (self._job.attempt, round(times.end, DECIMALS), update.plan.step, self._world.rank, self._world.host)
        parts = {f"{name}_seconds": round(value, DECIMALS) for name, value in times.seconds.items()}
        self._writer.write(
            TimingRecord(
                *place,
                **parts,  # type: ignore[arg-type]
                sent_bytes=update.sent_bytes,
                card_sent_bytes=update.card_sent_bytes,
                exchange_start=None if self._world.is_alone or start is None else round(start, DECIMALS),
            )
        )
        self._tell()

    def _told(self, totals: Totals) -> None:
        """The sums of the oldest update for which they were unknown, now that all ranks' have arrived."""
        self._totals.append(totals)
        self._tell()

    def _tell(self) -> None:
        while self._totals and self._untold[0].times is not None:
            self._write_step(self._untold.popleft(), self._totals.popleft())

    def _write_step(self, update: _Update, totals: Totals) -> None:
        if not self._world.is_first:
            return
        assert update.times is not None
        plan = update.plan
        record = StepRecord(
            attempt=self._job.attempt,
            time=round(update.times.end, DECIMALS),
            step=plan.step,
            loss=totals[0] / plan.target_tokens,
            nll=totals[1] / plan.target_tokens,
            learning_rate=update.rate,
            gradient_norm=float(update.norm),
            source_tokens=plan.source_tokens,
            target_tokens=plan.target_tokens,
            num_sentences=plan.num_sentences,
            step_seconds=round(update.times.step_seconds, DECIMALS),
        )
        self._writer.write(record)
        self._judge(record, totals)
        self._console.step(record)
        self._notices.step = plan.step
        self._look_for_findings(plan.step)
        if self._scalars is not None and plan.step % self._log_every == 0:
            self._scalars.write_step(record)

    def _judge(self, record: StepRecord, totals: Totals) -> None:
        """Say where the numbers of a step went wrong, or its loss stands out."""
        if totals[LEFT_OUT]:
            rank = None if self._world.is_alone else origin_of(totals)
            where = "" if rank is None else f" on rank {rank}"
            text = f"step {record.step:,} gave no number{where}: its update was left out"
            numbers = {"loss": record.loss, "gradient_norm": record.gradient_norm}
            self._news("left-out", record.step, text, **numbers, rank=rank, num_ranks=int(totals[LEFT_OUT]))
        usual = self._spikes.note(record.loss)
        if usual is not None:
            text = f"the loss of step {record.step:,} is {record.loss:.3f}, where {usual:.3f} was usual"
            self._news("spike", record.step, text, loss=record.loss, usual=usual)

    def rolled_back(self, step: int, text: str, **detail: Any) -> None:
        """The run stands at this step again."""
        if self._world.is_first:
            self._news("rolled-back", step, text, **detail)
            self._notices.tell("finding", text)
        if self._scalars is not None:
            self._scalars.close()
            self._scalars = TensorBoardWriter(self._job.folder, step + 1)

    def _news(self, kind: EventKind, step: int, text: str, **detail: Any) -> None:
        self._writer.write_event(kind, step, **detail, text=text)
        self._console.say(f"warning: {text}")

    def _look_for_findings(self, step: int) -> None:
        self._num_steps, self._last_step = self._num_steps + 1, step
        is_time = time.monotonic() - self._started > FINDINGS_FROM_SECONDS
        if self._findings is None and is_time and self._num_steps >= FINDINGS_FROM_STEPS:
            self._findings = Findings(self._job.run, self._finding)

    def _finding(self, finding: dict[str, Any]) -> None:
        text = f"{finding['title']}: {finding['evidence']} {finding['advice']}"
        self._writer.write_event("finding", self._last_step, code=finding["code"], text=text)
        line = f"{finding['level']} ({finding['code']}): {text}"
        self._console.say(line)
        self._notices.tell("finding", line)

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

    def checkpoint(self, saved: Saved | None) -> None:
        """One that is written by now, or could not be: training goes on, and the next may do better."""
        if saved is not None and saved.problem:
            self.warn(saved.step, f"{saved.problem}; training goes on from the checkpoint before if it has to")
        elif saved is not None and self._world.is_first:
            self._writer.write_event("checkpoint", saved.step, files=saved.files)

    def end(self, progress: Progress, reason: str) -> None:
        """Close everything; what is queued is written."""
        if self._findings is not None:
            self._findings.close()
        if self._world.is_first:
            kind = "stopped" if reason in UNFINISHED else "finished"
            self._writer.write_event(kind, progress.step, reason=reason)
            line = (
                f"{kind} at step {progress.step:,} ({reason}), trained for "
                f"{format_seconds(progress.trained_seconds)}, {format_count(progress.target_tokens)} target tokens"
            )
            self._console.say(line)
            self._notices.step = progress.step
            self._notices.tell("stopped" if kind == "stopped" else "done", line)
            last = self._job.folder.checkpoints_path / "last"
            if last.exists():
                size = sum(path.stat().st_size for path in last.iterdir())
                self._console.say(f"checkpoint {last.resolve().name}: {format_bytes_both(size)}")
        if self._scalars is not None:
            self._scalars.close()
        if self._sampler is not None:
            self._sampler.close()
        self._notices.close()
        self._writer.close()
