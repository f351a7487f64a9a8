"""Starts a fixed number of worker processes on this machine through torchrun's agent, and says how they ended."""

import logging
import sys
import uuid
import warnings
from collections.abc import Sequence

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def run_workers(command: Sequence[str], num_workers: int) -> int:
    """Run `command` (arguments of this Python) as `num_workers` ranks; the exit code of the first that failed, or 0."""
    config = LaunchConfig(
        run_id=uuid.uuid4().hex,
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=num_workers,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=0,
        monitor_interval=0.1,
    )
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    logging.getLogger("torch.distributed.launcher").setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            elastic_launch(config, sys.executable)(*command)
    except ChildFailedError as error:
        codes = [failure.exitcode for failure in error.failures.values()]
        # A rank that fails takes the others down with it: the lowest positive code is the cause.
        return min((code for code in codes if code > 0), default=1)
    except SignalException as error:
        return 128 + error.sigval.value
    return 0
