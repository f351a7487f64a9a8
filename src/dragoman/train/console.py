"""What a person sees while a run trains: one living line on a terminal, plain lines elsewhere, and `log.txt`."""

import sys
import time
from contextlib import suppress
from pathlib import Path

from dragoman.run.records import EvalRecord, StepRecord
from dragoman.units import format_count, format_seconds

PLAIN_SECONDS = 15.0
LIVE_SECONDS = 0.2


class Console:
    """Rank 0's voice; other ranks have a silent one."""

    def __init__(self, log_path: Path | None, max_steps: int) -> None:
        self._log_path = log_path
        self._max_steps = max_steps
        self._is_live = sys.stderr.isatty()
        self._shown_at = self._started_at = time.monotonic()
        self._num_steps = 0

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._log_path is None:
            return
        sys.stderr.write(f"\r\x1b[K{text}\n" if self._is_live else f"{text}\n")
        sys.stderr.flush()
        # A disk that is full must not end the training; the checkpoint will say so.
        with suppress(OSError), self._log_path.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")

    def step(self, record: StepRecord) -> None:
        """Progress, a few times a second or a few times a minute."""
        if self._log_path is None:
            return
        self._num_steps += 1
        pause = LIVE_SECONDS if self._is_live else PLAIN_SECONDS
        if time.monotonic() - self._shown_at < pause:
            return
        self._shown_at = time.monotonic()
        line = self._progress(record)
        if self._is_live:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        else:
            self.say(line)

    def evaluation(self, record: EvalRecord) -> None:
        scores = "" if record.bleu is None else f"  BLEU {record.bleu:.1f}  chrF {record.chrf:.1f}"
        train = "" if record.train_loss is None else f"  train loss {record.train_loss:.3f}"
        self.say(f"step {record.step:,}  {record.dev_set}  loss {record.loss:.3f}{train}{scores}")

    def _progress(self, record: StepRecord) -> str:
        tokens_per_second = record.target_tokens / record.step_seconds
        # The mean over this attempt, validation and checkpoints included: what is left will have them too.
        mean_seconds = (time.monotonic() - self._started_at) / self._num_steps
        remaining = (self._max_steps - record.step) * mean_seconds
        return (
            f"step {record.step:,}/{self._max_steps:,}  loss {record.loss:.3f}  "
            f"{format_count(tokens_per_second)} target tokens/s  {record.step_seconds:.3g} s/step  "
            f"rate {record.learning_rate:.2e}  left {format_seconds(remaining)}"
        )
