"""Starts the worker processes of one host through torchrun's agent, with a fixed world, and says how they ended."""

import dataclasses
import logging
import os
import signal
import sys
import uuid
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsDest
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from dragoman.dist.rendezvous import BACKEND, Meeting
from dragoman.errors import DragomanError
from dragoman.run.control import PREEMPTED, WARNINGS

LOOPBACK = "127.0.0.1"
ECHO_SECONDS = 2
SIGNALLED = -1  # in the place of a rank
HANDLED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, *WARNINGS)
Reroute = Callable[[dict[int, dict[str, str]]], dict[int, str]]


class Routes(DefaultLogsSpecs):
    """Where workers' output goes: `reroute` sees their environments and gives a path per local rank, or nothing."""

    def __init__(self, reroute: Reroute) -> None:
        super().__init__(log_dir=os.devnull)  # no folder of torch's is left behind
        self._reroute = reroute

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        paths = self._reroute(envs)
        outputs = {rank: paths.get(rank, "") for rank in envs}
        plain = super().reify(envs)
        return dataclasses.replace(plain, stdouts=outputs, stderrs=outputs, tee_stdouts={}, tee_stderrs={})


def run_workers(command: Sequence[str], num_workers: int) -> dict[int, int]:
    """Run `command` (arguments of this Python) as `num_workers` ranks of this machine alone; what `run_node` gives."""
    return run_node(command, num_workers, Meeting(0, ("here",), LOOPBACK, 0))


def run_node(
    command: Sequence[str], num_workers: int, meeting: Meeting, reroute: Reroute = lambda _: {}
) -> dict[int, int]:
    """Run this host's workers among those of all hosts; rank -> exit code of those that failed, as Popen has it.

    A signal to this process goes to the workers and gives `{SIGNALLED: code}`.
    """
    refusals: list[DragomanError] = []
    config = LaunchConfig(
        run_id=_run_id(meeting),
        min_nodes=len(meeting.node_names),
        max_nodes=len(meeting.node_names),
        nproc_per_node=num_workers,
        rdzv_backend=BACKEND,
        rdzv_configs={"meeting": meeting, "refuse": refusals.append},
        local_addr=meeting.address,
        max_restarts=0,
        monitor_interval=0.1,
        logs_specs=Routes(reroute),
        signals_to_handle=",".join(number.name for number in HANDLED),
    )
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    logging.getLogger("torch.distributed.launcher").setLevel(logging.CRITICAL)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        with warnings.catch_warnings(), _kept_handlers():
            warnings.simplefilter("ignore")
            elastic_launch(config, sys.executable)(*command)
    except ChildFailedError as error:
        first = min(failure.timestamp for failure in error.failures.values())
        # torch ends the others once one has failed: what comes later was its doing, or an echo.
        return {
            rank: failure.exitcode
            for rank, failure in error.failures.items()
            if failure.timestamp - first <= ECHO_SECONDS
        }
    except SignalException as error:
        return {SIGNALLED: PREEMPTED if error.sigval in WARNINGS else 128 + error.sigval.value}
    except DragomanError:
        raise
    except Exception:
        if refusals:
            raise refusals[0] from None
        raise
    return {}


@contextmanager
def _kept_handlers() -> Generator[None]:
    """torch leaves its own behind, and a signal would be a traceback in whatever comes after the workers."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_id(meeting: Meeting) -> str:
    """Keys of the store begin with it: all hosts must have the same, and one machine alone may have any."""
    return uuid.uuid4().hex if len(meeting.node_names) == 1 else f"hosts-{len(meeting.node_names)}"
