"""What a run writes down: one frozen type per kind of line, and the manifest. Facts only, no verdicts.

The file contract of `docs/run-folder.md`, schema 1. Knows JSON; knows no paths, no torch and no recipe model.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import Field, TypeAdapter, ValidationError

from dragoman.run.samples import Seconds, SystemSample, Whole

SCHEMA = 1
NumRanks = Annotated[int, Field(ge=0, le=1_000_000)]  # lists are made of so many

EventKind = Literal[
    "started", "resumed", "changed", "clocks", "checkpoint", "best", "finding", "stopped", "finished", "warning",
    "left-out", "spike", "rolled-back",
]  # fmt: skip
WRONG_NUMBERS: tuple[EventKind, ...] = ("left-out", "spike", "rolled-back")  # each says in `text` what happened


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One optimizer update, all ranks together; a line of `steps.jsonl`, written by rank 0."""

    attempt: Whole
    time: Seconds  # unix seconds at the end of the step
    step: Whole
    loss: float  # per target token, with dropout and label smoothing
    nll: float  # per target token, with dropout, without smoothing
    learning_rate: float
    gradient_norm: float  # before clipping
    source_tokens: Whole
    target_tokens: Whole
    num_sentences: Whole
    step_seconds: Seconds  # without validation and checkpoint


@dataclass(frozen=True, slots=True)
class TimingRecord:
    """Where one rank's time went in one step; a line of `timing.rank-NNN.jsonl`. Parts sum to the wall."""

    attempt: Whole
    time: Seconds
    step: Whole
    rank: Whole
    host: str
    data_seconds: Seconds
    forward_seconds: Seconds
    backward_seconds: Seconds
    exchange_seconds: Seconds  # what the step waited for the exchange, not what overlapped with computing
    optimizer_seconds: Seconds
    validation_seconds: Seconds
    checkpoint_seconds: Seconds
    other_seconds: Seconds
    wall_seconds: Seconds
    sent_bytes: Whole = 0  # what the exchange sent in this step, by its own count
    card_sent_bytes: Whole | None = None  # what left the network card meanwhile; on one rank of each host
    exchange_start: Seconds | None = None  # unix seconds by this host's clock; None where a rank has no peers
    is_sampled: bool = True  # False where the split is only known of the nearest sampled step


@dataclass(frozen=True, slots=True)
class EvalRecord:
    """One dev set at one step; a line of `evals.jsonl`. Losses here are without dropout and smoothing."""

    attempt: Whole
    time: Seconds
    step: Whole
    dev_set: str
    loss: float  # negative log-likelihood per target token
    train_loss: float | None  # the same measure on fixed training pairs; on the first dev set only
    bleu: float | None
    chrf: float | None
    bleu_signature: str | None
    chrf_signature: str | None
    num_sentences: Whole
    num_decoded: Whole
    target_tokens: Whole
    loss_seconds: Seconds
    decode_seconds: Seconds


@dataclass(frozen=True, slots=True)
class EvalSentence:
    """One sentence of an evaluation; a line of `evals/step-NNNNNNNN/DEVSET.jsonl`."""

    index: Whole
    source: str
    reference: str
    hypothesis: str | None  # None where it was not decoded
    nll_sum: float
    target_tokens: Whole


def _no_detail() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened once; a line of `events.jsonl`."""

    attempt: Whole
    time: Seconds
    kind: str  # an EventKind; a newer version may know more
    step: Whole
    detail: dict[str, Any] = field(default_factory=_no_detail)


Record = StepRecord | TimingRecord | EvalRecord | SystemSample | Event
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Host:
    """One machine of the run."""

    name: str
    cpu: str = ""
    num_cores: Whole = 0
    memory_bytes: Whole = 0
    gpus: tuple[str, ...] = ()
    num_ranks: Whole = 0
    interface: str | None = None  # the network card that carries the exchange
    card_bits_per_second: Whole | None = None  # what that card says its link runs at


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of the run: the command typed, and how many ranks it had."""

    attempt: Whole
    time: Seconds
    command: str
    world_size: NumRanks


@dataclass(frozen=True, slots=True)
class SideSize:
    """How much text one side of the training set is: as given, after cleaning, and as pieces."""

    language: str
    raw_bytes: Whole = 0
    raw_lines: Whole = 0
    clean_bytes: Whole = 0
    clean_lines: Whole = 0
    bpe_bytes: Whole = 0
    num_tokens: Whole = 0


@dataclass(frozen=True, slots=True)
class DataSummary:
    """The data folder a run learned from, as far as a reader of the run needs it when that folder is gone."""

    path: str
    fingerprint: str  # changes when any shard or the vocabulary does
    languages: str  # en-de
    num_pairs: Whole
    source: SideSize
    target: SideSize
    corpora: dict[str, int] = field(default_factory=dict[str, int])  # name -> pairs kept
    dev_sets: dict[str, int] = field(default_factory=dict[str, int])  # name -> pairs
    test_sets: dict[str, int] = field(default_factory=dict[str, int])
    vocab_size: Whole = 0
    rejected: dict[str, int] = field(default_factory=dict[str, int])  # reason -> pairs, all corpora together
    removes_overlap: bool = True  # pairs of dev and test sets were taken out of the training set
    num_too_long: Whole = 0  # pairs longer than the recipe trains on


@dataclass(frozen=True, slots=True)
class Exchange:
    """How the ranks stay together: the settings in force, why, and what was measured to choose them."""

    settings: dict[str, Any]  # a recipe's `sync` section without auto
    num_hosts: Whole
    reasons: list[str] = field(default_factory=list[str])
    measured: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the run is: settings, machines, data, versions; `manifest.json`."""

    name: str
    created: Seconds  # unix seconds
    recipe: dict[str, Any]  # resolved: every setting, defaults included
    recipe_hash: str
    versions: dict[str, str]  # dragoman, python, torch, numpy, ...
    world_size: NumRanks
    device: str  # cpu, cuda
    precision: str  # fp32, bf16
    num_parameters: Whole
    data: DataSummary
    hosts: tuple[Host, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    exchange: Exchange | None = None
    kernels: str = "torch"  # fused; or torch, and why where there is a GPU: `torch (Triton is not installed)`
    recomputes: bool = False  # whether activations were computed again on the way back
    num_microbatches: Whole | None = None  # of a step, in the latest attempt; None: the recipe names it
    git_commit: str | None = None
    price_per_hour: float | None = None  # of all machines together
    currency: str | None = None
    schema: int = SCHEMA


def to_line(record: Record | EvalSentence) -> str:
    """One line of JSON with its newline. NaN and infinities stay, as the literals that Python reads back."""
    # No field but Event.detail nests, so dataclasses.asdict's deep copy would be wasted time.
    values = {name: getattr(record, name) for name in record.__slots__}
    return json.dumps(values, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: object) -> object:
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else str(value)


def from_line(record_type: type[T], line: bytes) -> T | None:
    """The record of a line, passing over unknown keys; None where it is torn or of another shape."""
    try:
        return _adapter(record_type).validate_json(line)
    except ValidationError:
        return None


def manifest_to_json(manifest: Manifest) -> str:
    """Indented, the schema first: people open this file."""
    values = dataclasses.asdict(manifest)
    ordered = {"schema": values.pop("schema"), **values}
    return json.dumps(ordered, ensure_ascii=False, indent=2, default=str) + "\n"


def manifest_from_dict(values: dict[str, Any]) -> Manifest:
    """Raises ValueError naming the first key that is missing or ill-typed; unknown keys are passed over."""
    try:
        return _adapter(Manifest).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None


@cache
def _adapter(record_type: type[T]) -> TypeAdapter[T]:
    return cast("TypeAdapter[T]", TypeAdapter(record_type))
