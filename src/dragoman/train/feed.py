"""From planned batches to what passes want, ahead of the loop. Knows the plan and the ranks, not the device."""

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dragoman.data.batches import Batch, BatchPlan, StepPlan
from dragoman.dist.world import World

STEPS_AHEAD = 2
MakePiece = Callable[[Batch, int], Any]


@dataclass(frozen=True)
class StepInput:
    """What one rank computes in one step."""

    plan: StepPlan
    pieces: list[Any]  # its microbatches, as passes want them
    own_tokens: int  # target tokens of these


def feed(plan: BatchPlan, world: World, steps: Iterable[int], make_piece: MakePiece) -> Generator[StepInput]:
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
                put(_step_input(plan, world, step, make_piece))
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


def _step_input(plan: BatchPlan, world: World, step: int, make_piece: MakePiece) -> StepInput:
    step_plan = plan.step(step)
    mine = range(world.rank, plan.config.num_microbatches, world.size)
    batches = [(index, plan.batch(step_plan, index)) for index in mine]
    there = [(index, batch) for index, batch in batches if batch is not None]
    pieces = [make_piece(batch, index) for index, batch in there]
    return StepInput(step_plan, pieces, sum(batch.num_target_tokens for _, batch in there))
