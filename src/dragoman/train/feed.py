"""From planned batches to tensors, one step ahead of the loop. Knows the plan and the device, not the model."""

import queue
import threading
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.data.batches import Batch, BatchPlan, StepPlan, fill
from dragoman.dist.world import World
from dragoman.model.layout import Layout

STEPS_AHEAD = 2
SLOT_MULTIPLE = 64


@dataclass(frozen=True)
class Microbatch:
    """One batch as tensors."""

    index: int  # its number within the step, which seeds dropout
    source_ids: torch.Tensor
    source: Layout
    input_ids: torch.Tensor
    labels: torch.Tensor
    target: Layout
    weights: torch.Tensor  # 1 for a real target token, 0 for a filler

    @classmethod
    def of(cls, batch: Batch, index: int, device: torch.device) -> "Microbatch":
        weights = np.ones(len(batch.target_ids), dtype=np.float32)
        weights[batch.num_target_tokens :] = 0
        source_ids, input_ids, labels, weights_T = (
            torch.from_numpy(array).to(device)
            for array in (batch.source_ids, batch.input_ids, batch.target_ids, weights)
        )
        source, target = Layout(batch.source_lengths, device), Layout(batch.target_lengths, device)
        return cls(index, source_ids, source, input_ids, labels, target, weights_T)


@dataclass(frozen=True)
class StepInput:
    """What one rank computes in one step."""

    plan: StepPlan
    microbatches: list[Microbatch]
    own_tokens: int  # target tokens of these microbatches


def feed(plan: BatchPlan, world: World, steps: Iterable[int]) -> Generator[StepInput]:
    """This rank's share of every step, prepared by a thread while the loop computes."""
    ready: queue.Queue[StepInput | BaseException | None] = queue.Queue(maxsize=STEPS_AHEAD)
    ended = threading.Event()

    def put(item: StepInput | BaseException | None) -> None:
        """Wait for room, but not for ever: a loop that has ended takes nothing more."""
        while not ended.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def work() -> None:
        try:
            for step in steps:
                put(_step_input(plan, world, step))
                if ended.is_set():
                    return
            put(None)
        except BaseException as error:  # the loop raises it
            put(error)

    thread = threading.Thread(target=work, name="feed", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        ended.set()


def _step_input(plan: BatchPlan, world: World, step: int) -> StepInput:
    step_plan = plan.step(step)
    mine = range(world.rank, plan.config.num_microbatches, world.size)
    batches = [(index, plan.batch(step_plan, index)) for index in mine]
    return StepInput(
        step_plan,
        [
            Microbatch.of(_fixed_shape(batch, plan, world.device), index, world.device)
            for index, batch in batches
            if batch is not None
        ],
        sum(batch.num_target_tokens for _, batch in batches if batch is not None),
    )


def _fixed_shape(batch: Batch, plan: BatchPlan, device: torch.device) -> Batch:
    """On a GPU every microbatch of a run has the same shape; a rare larger one takes the next size up."""
    if device.type == "cpu":
        return batch
    max_length = plan.config.max_pieces + 1
    target_slots = plan.config.target_tokens / plan.config.num_microbatches
    source_slots = target_slots * plan.source_tokens / plan.target_tokens
    return fill(
        batch,
        _slots(len(batch.source_ids), source_slots * 1.05, max_length),
        _slots(len(batch.target_ids), target_slots, max_length),
        max_length,
    )


def _slots(num_tokens: int, planned: float, max_length: int) -> int:
    """Room for the tokens and for as many filler sequences as either side may need."""
    needed = max(planned, num_tokens + num_tokens // (10 * max_length) + 2)
    return -(-round(needed) // SLOT_MULTIPLE) * SLOT_MULTIPLE
