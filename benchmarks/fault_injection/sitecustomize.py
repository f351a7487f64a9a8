"""Faults inside Dragoman's own processes, without a hook in the product.

Python imports this file at its start where its folder is on PYTHONPATH. A campaign lays files into the folder that
DRAGOMAN_FAULTS_FOLDER names, one folder per host:

    clock               seconds that this host's clock is ahead, from now on
    nan-gradient RANK   that rank's next backward pass begins with NaN in the gradient
    out-of-memory RANK  that rank's next forward pass finds no memory

The last two happen once, in a step and not while a run measures itself before its first one: who takes one removes it,
and leaves `fired` with the moment (unix seconds). A step takes at least DRAGOMAN_FAULTS_PACE seconds, so that runs last
long enough to be broken, and leave the cores to others meanwhile.
"""

import contextlib
import importlib.machinery
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

PASSES, METER = "dragoman.train.passes", "dragoman.train.meter"
LOOK_SECONDS = 0.05
NUM_MICROBATCHES = 6  # as in the settings of a campaign
real_time = time.time
has_begun = False  # to train


def main(folder: Path) -> None:
    time.time = JumpingClock(folder / "clock")
    sys.meta_path.insert(0, AfterImport(PASSES, lambda module: spoil(module, folder)))
    sys.meta_path.insert(0, AfterImport(METER, watch_beginning))


class JumpingClock:
    """`time.time`, ahead by what the file says."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ahead_seconds = 0.0
        self._looked = -1.0

    def __call__(self) -> float:
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._looked = now
            with contextlib.suppress(OSError, ValueError):
                self._ahead_seconds = float(self._path.read_text())
        return real_time() + self._ahead_seconds


class AfterImport:
    """A finder that lets the usual ones find a module, and changes it once it is loaded."""

    def __init__(self, name: str, change: Any) -> None:
        self._name = name
        self._change = change

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        execute = loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            self._change(module)

        loader.exec_module = execute_and_change


def watch_beginning(module: Any) -> None:
    """A meter is made right before the first step."""
    meter = module.Meter
    make = meter.__init__

    def make_and_note(self: Any, *arguments: Any) -> None:
        global has_begun
        make(self, *arguments)
        has_begun = True

    meter.__init__ = make_and_note


def spoil(module: Any, folder: Path) -> None:
    """Before a pass of the CPU's kind this rank looks whether its turn has come."""
    passes, rank = module.TorchPasses, os.environ.get("RANK", "0")
    forward, backward = passes.forward, passes.backward
    # Of the microbatches of a step, each rank has its share.
    share = int(os.environ.get("WORLD_SIZE", "1")) / NUM_MICROBATCHES
    pause_seconds = share * float(os.environ.get("DRAGOMAN_FAULTS_PACE", "0"))

    def forward_or_fail(self: Any, *arguments: Any) -> Any:
        if is_due(folder, "out-of-memory", rank):
            raise module.torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 2.00 GiB (a fault of a campaign)"
            )
        time.sleep(pause_seconds)
        return forward(self, *arguments)

    def backward_or_nan(self: Any) -> None:
        if is_due(folder, "nan-gradient", rank):
            # What the pass finds is added to this.
            self._built.flat.gradient.fill_(float("nan"))
        backward(self)

    passes.forward, passes.backward = forward_or_fail, backward_or_nan


def is_due(folder: Path, kind: str, rank: str) -> bool:
    if not has_begun:
        return False
    try:
        (folder / f"{kind} {rank}").rename(folder / f"{kind} {rank} taken")
    except OSError:
        return False
    (folder / "fired").write_text(str(real_time()))
    return True


if "DRAGOMAN_FAULTS_FOLDER" in os.environ:
    main(Path(os.environ["DRAGOMAN_FAULTS_FOLDER"]))
