"""Scalars as TensorBoard event files, without torch.

Knows the records. The tensorboard package has no types and takes 0.2 s to import, so it is imported by name, late.
"""

import sys
import time
from importlib import import_module
from typing import Any

from dragoman.run.folder import RunFolder
from dragoman.run.records import EvalRecord, StepRecord

FLUSH_SECONDS = 5
# EventFileWriter blocks when its queue is full; this many events are minutes of training.
MAX_WAITING = 10_000


class TensorBoardWriter:
    """One event file per attempt. Like the run's records, it may fail but never raises into training."""

    def __init__(self, folder: RunFolder, first_step: int = 1) -> None:
        """`first_step`: what an earlier attempt showed from there on is taken off the curves."""
        self._first_dev_set: str | None = None
        self._writer: Any = None
        try:
            self._writer = _open_event_file(str(folder.tensorboard_path), first_step)
        except Exception as error:
            self._give_up(error)

    def write_step(self, record: StepRecord) -> None:
        rate = 1 / record.step_seconds if record.step_seconds > 0 else 0.0
        self._write(
            record,
            {
                "train/loss": record.loss,
                "train/learning_rate": record.learning_rate,
                "train/gradient_norm": record.gradient_norm,
                "speed/steps_per_second": rate,
                "speed/tokens_per_second": rate * record.target_tokens,
            },
        )

    def write_eval(self, record: EvalRecord) -> None:
        """The first dev set is `eval/...`, any other one `eval-NAME/...`."""
        self._first_dev_set = self._first_dev_set or record.dev_set
        group = "eval" if record.dev_set == self._first_dev_set else f"eval-{record.dev_set}"
        values = {"loss": record.loss, "bleu": record.bleu, "chrf": record.chrf}
        self._write(record, {f"{group}/{name}": value for name, value in values.items() if value is not None})

    def close(self) -> None:
        if self._writer is not None:
            try:
                self._writer.close()
            except Exception as error:
                self._give_up(error)

    def __enter__(self) -> "TensorBoardWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, record: StepRecord | EvalRecord, scalars: dict[str, float]) -> None:
        if self._writer is None:
            return
        try:
            self._writer.add_event(_scalar_event(record.time, record.step, scalars))
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._writer = None
        sys.stderr.write(f"warning: no more TensorBoard events ({error}); training goes on\n")


def _open_event_file(folder: str, first_step: int) -> Any:
    module = import_module("tensorboard.summary.writer.event_file_writer")
    writer = module.EventFileWriter(folder, max_queue_size=MAX_WAITING, flush_secs=FLUSH_SECONDS)
    events = import_module("tensorboard.compat.proto.event_pb2")
    # TensorBoard drops what it has of this step and later ones when it meets a start mark.
    start = events.SessionLog(status=events.SessionLog.START)
    writer.add_event(events.Event(wall_time=time.time(), step=first_step, session_log=start))
    return writer


def _scalar_event(wall_time: float, step: int, scalars: dict[str, float]) -> Any:
    summaries = import_module("tensorboard.compat.proto.summary_pb2")
    events = import_module("tensorboard.compat.proto.event_pb2")
    values = [summaries.Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
    return events.Event(wall_time=wall_time, step=step, summary=summaries.Summary(value=values))
