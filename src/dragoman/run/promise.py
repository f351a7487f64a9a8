"""What was measured and promised before a run: `profile.json` and `prediction.json`. Facts and numbers, no arithmetic.

Rates are bytes a second, and "out" is what leaves a host, as long as nothing else is said.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import Field, TypeAdapter, ValidationError

from dragoman.errors import DragomanError
from dragoman.run.folder import replaced_file
from dragoman.run.samples import Seconds, Whole

SCHEMA = 1
Amount = Annotated[float, Field(ge=-1e24, le=1e24)]


@dataclass(frozen=True, slots=True)
class PairSpeed:
    """From one host to another: alone, and while as much comes back."""

    source: str
    target: str
    alone_bytes_per_second: Amount
    both_bytes_per_second: Amount | None = None


@dataclass(frozen=True, slots=True)
class SumTime:
    """How long all ranks took to sum so many bytes (fp32), as the exchange will do it."""

    num_bytes: Whole
    seconds: Seconds


@dataclass(frozen=True, slots=True)
class LinkProfile:
    """The network between the hosts. `bytes_per_second` is out of the slowest host while as much comes in."""

    bytes_per_second: Amount
    latency_seconds: Seconds  # of a sum of one number
    alone_bytes_per_second: Amount | None = None  # slowest pair, one way only
    interfaces: dict[str, str] = field(default_factory=dict[str, str])  # host -> card
    card_bits_per_second: dict[str, int] = field(default_factory=dict[str, int])  # host -> what its card says
    pairs: tuple[PairSpeed, ...] = ()
    sums: tuple[SumTime, ...] = ()


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """A step of one recipe on one kind of rank. Seconds are those of the slowest rank."""

    recipe_hash: str
    device: str  # cpu, or the name of the GPU
    precision: str
    num_parameters: Whole
    num_microbatches: Whole  # of a step, over all ranks
    forward_seconds: Seconds  # of one microbatch
    backward_seconds: Seconds
    optimizer_seconds: Seconds  # of a step
    num_local_ranks: Whole  # per host
    local_sum_seconds: Seconds = 0.0  # the gradient summed between the ranks of one host
    peak_flops: Amount | None = None  # per rank and second: a large matrix product, measured
    method_seconds: dict[str, float] = field(default_factory=dict[str, float])  # arithmetic of an exchange, by name
    target_tokens: Whole = 0  # of a step; 0: not said
    vocab_size: Whole = 0  # of the text it was timed with; 0: not said
    kernels: str = "torch"  # as in the manifest of a run
    gpu_free_bytes: Whole | None = None  # that the poorest rank has for training, model included; None: no GPUs
    recomputes: bool = False  # activations, as in the manifest


@dataclass(frozen=True, slots=True)
class HostProfile:
    """One machine, as far as a plan needs it."""

    name: str
    cpu: str = ""
    num_cores: Whole = 0
    memory_bytes: Whole = 0
    gpus: tuple[str, ...] = ()
    num_ranks: Whole = 1
    price_per_hour: Amount | None = None
    disk_bytes_per_second: Amount | None = None  # written and synced
    disk_free_bytes: Whole | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What `doctor`, or `train` before its first step, measured."""

    time: Seconds
    hosts: tuple[HostProfile, ...] = ()
    link: LinkProfile | None = None
    compute: ComputeProfile | None = None
    checks: tuple[dict[str, Any], ...] = ()  # doctor's: code, level, title, evidence, advice, host
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class StepSplit:
    """One step, where its time goes."""

    compute_seconds: Seconds  # forward, backward, and the arithmetic of the exchange
    exchange_seconds: Seconds  # waiting for the exchange
    optimizer_seconds: Seconds
    data_seconds: Seconds = 0.0

    @property
    def total_seconds(self) -> float:
        return self.compute_seconds + self.exchange_seconds + self.optimizer_seconds + self.data_seconds

    @property
    def waiting_share(self) -> float:
        return self.exchange_seconds / self.total_seconds if self.total_seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """One stretch of the timeline: download, prepare, push, train, evaluate, save."""

    name: str
    seconds: Seconds
    how: str = ""  # measured, estimated from ..., known from the data folder


@dataclass(frozen=True, slots=True)
class Cost:
    """In `currency`; None where no price is known."""

    machines: Amount | None = None
    traffic: Amount | None = None
    storage: Amount | None = None
    currency: str = "$"

    @property
    def total(self) -> float | None:
        known = [part for part in (self.machines, self.traffic, self.storage) if part is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The same training done otherwise."""

    name: str  # one machine; link x2; dense bf16; 4 hosts; batch x2
    step_seconds: Seconds
    run_seconds: Seconds  # to see as much text
    cost: Amount | None
    limit: str  # compute, exchange, optimizer or data: the largest part
    note: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a plan promises."""

    time: Seconds
    is_measured: bool  # from a profile; else estimated from tables, as a range
    recipe: str
    num_hosts: Whole
    num_ranks: Whole
    method: str  # dense fp32, powersgd, diloco sign every 4
    num_steps: Whole
    step: StepSplit
    low_step_seconds: Seconds
    high_step_seconds: Seconds
    sent_bytes: Whole  # out of each host in a step, as much comes in
    formula: str  # of sent_bytes, with its numbers
    bytes_per_second: Amount | None  # of the link, as counted on
    floor_seconds: Seconds | None  # sent_bytes / bytes_per_second
    train_seconds: Seconds  # steps alone
    total_seconds: Seconds  # the whole timeline
    timeline: tuple[Stage, ...] = ()
    num_epochs: Amount | None = None
    cost: Cost = Cost()
    price_per_hour: Amount | None = None
    checkpoint_files: dict[str, int] = field(default_factory=dict[str, int])  # name -> bytes
    disk_bytes: Whole = 0  # checkpoints kept and records, at the end
    single_host_step_seconds: Seconds | None = None  # the same step on one of the hosts alone
    what_if: tuple[WhatIf, ...] = ()
    break_even: str = ""  # in a sentence: from which link on the second host pays
    line: str = ""  # all of it in one line
    notes: tuple[str, ...] = ()  # what was assumed
    num_microbatches: Whole | None = None  # of a step, over all ranks
    schema: int = SCHEMA


P = TypeVar("P", Profile, Prediction)


def write_promise(path: Path, promise: Profile | Prediction) -> None:
    """Replace the file whole."""
    try:
        with replaced_file(path) as fresh:
            fresh.write_text(json.dumps(dataclasses.asdict(promise), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise DragomanError(f"cannot write {path}: {error.strerror}", "name a file in a folder that exists") from None


def read_promise(path: Path, kind: type[P]) -> P:
    """A profile or a prediction; what is none is one clear line."""
    try:
        return cast("P", TypeAdapter(kind).validate_json(path.read_bytes()))
    except OSError as error:
        raise DragomanError(
            f"cannot read {path}: {error.strerror}", "name a file that `dragoman doctor` wrote"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        problem = f"{path} is no {kind.__name__.lower()}: {where}{first['msg']}"
        raise DragomanError(problem, "`dragoman doctor` writes a fresh one") from None


def find_promise(path: Path, kind: type[P]) -> P | None:
    """The same, or None where it is missing or damaged: a run goes on without."""
    try:
        return read_promise(path, kind) if path.is_file() else None
    except DragomanError:
        return None
