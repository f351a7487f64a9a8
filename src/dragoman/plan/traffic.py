"""What each method of exchange sends in one step: bytes out of a host, when they may set out, and the formula.

Sizes only: how long a link takes is `step`'s matter. What `dist` sends is the model here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.config import SyncConfig
from dragoman.plan.payload import BITS, BLOCKS, SCALE_BYTES, Precision, encoded_bytes, ring_bytes
from dragoman.plan.shapes import Bucket, Parameter, buckets_of, num_values
from dragoman.units import format_bytes, format_count


@dataclass(frozen=True, slots=True)
class Placement:
    """How many ranks on how many hosts."""

    num_hosts: int
    num_ranks: int

    @property
    def ranks_per_host(self) -> int:
        return -(-self.num_ranks // self.num_hosts)


@dataclass(frozen=True, slots=True)
class Message:
    """One collective."""

    sent_bytes: int  # out of each host; as much comes in
    summed_bytes: int | None = None  # of the tensor, where all ranks sum one
    ready_share: float = 1.0  # of the last backward pass, done when it may set out


@dataclass(frozen=True, slots=True)
class Traffic:
    """All that one step sends."""

    messages: tuple[Message, ...]
    formula: str
    is_background: bool = False  # travels while later steps compute
    delay_steps: int = 0  # how many of them
    num_waits: int = 1  # rounds that wait for each other and for the slowest answer

    @property
    def sent_bytes(self) -> int:
        return sum(message.sent_bytes for message in self.messages)


NOTHING = Traffic((), "one rank sends nothing", num_waits=0)


def traffic_of(sync: SyncConfig, parameters: Sequence[Parameter], placement: Placement) -> Traffic:
    """The traffic of a recipe's settled `sync` section."""
    if placement.num_ranks == 1:
        return NOTHING
    match sync.method:
        case "dense":
            return dense_traffic(buckets_of(parameters), sent_precision(sync), placement)
        case "int8":
            return int8_traffic(num_values(parameters), placement)
        case "powersgd":
            return powersgd_traffic(parameters, sync.matrix_rank, placement)
        case "diloco":
            return diloco_traffic(num_values(parameters), sync, placement)
        case "auto":
            raise AssertionError("auto is resolved before it gets here")


def method_name(sync: SyncConfig) -> str:
    """`dense fp32`, `powersgd rank 4`, `diloco sign every 4`: what decides bytes and quality."""
    match sync.method:
        case "dense":
            return f"dense {sent_precision(sync)}"
        case "powersgd":
            return f"powersgd rank {sync.matrix_rank}"
        case "diloco":
            return f"diloco {sent_precision(sync)} every {sync.every_steps}"
        case _:
            return sync.method


def sync_of(method: str, **settings: object) -> SyncConfig:
    """A settled `sync` section; what is not said has its default."""
    return SyncConfig.model_validate({"method": method, **settings})


def sent_precision(sync: SyncConfig) -> Precision:
    if sync.precision != "auto":
        return sync.precision
    natural: dict[str, Precision] = {"int8": "int8", "diloco": "sign"}
    return natural.get(sync.method, "fp32")


def dense_traffic(buckets: Sequence[Bucket], precision: Precision, placement: Placement) -> Traffic:
    """The exact sum: a ring over all ranks, of which one rank's share leaves each host."""
    messages: list[Message] = []
    for bucket in buckets:
        num_bytes = encoded_bytes(bucket.num_values, precision)
        messages.append(Message(_leaving_ring(num_bytes, placement), num_bytes, bucket.ready_share))
    count = sum(bucket.num_values for bucket in buckets)
    formula = f"{format_count(count)} gradients x {BITS[precision] // 8} bytes x {_ring(placement)}"
    return _stated(Traffic(tuple(messages), formula, num_waits=2), placement)


def int8_traffic(count: int, placement: Placement) -> Traffic:
    """Every rank gets one chunk of everybody's gradient, and everybody gets its sum."""
    chunk = encoded_bytes(-(-count // placement.num_ranks), "int8")
    sent = _leaving_swap(chunk, placement)
    crossing = placement.ranks_per_host * (placement.num_ranks - placement.ranks_per_host)
    formula = (
        f"{format_count(count)} gradients / {placement.num_ranks} ranks x (1 + {SCALE_BYTES}/{BLOCKS['int8']}) bytes "
        f"x 2 rounds x {crossing} pairs of ranks on different hosts"
    )
    return _stated(Traffic((Message(sent), Message(sent)), formula, num_waits=3), placement)


def powersgd_traffic(parameters: Sequence[Parameter], rank: int, placement: Placement) -> Traffic:
    """Two sums that follow each other: left factors with the vectors, then right factors. None overlaps."""
    matrices = [p.shape for p in parameters if len(p.shape) == 2 and min(p.shape) > 2 * rank]
    whole = sum(p.num_values for p in parameters if len(p.shape) != 2 or min(p.shape) <= 2 * rank)
    rounds = (
        rank * sum(height for height, _ in matrices) + whole,
        rank * sum(width for _, width in matrices),
    )
    messages = tuple(Message(_leaving_ring(4 * count, placement), 4 * count) for count in rounds)
    formula = (
        f"({format_count(rounds[0])} values of left factors and vectors + {format_count(rounds[1])} of right factors) "
        f"x 4 bytes x {_ring(placement)}"
    )
    return _stated(Traffic(messages, formula, num_waits=3), placement)


def diloco_traffic(count: int, sync: SyncConfig, placement: Placement) -> Traffic:
    """One fragment of the weights to every other replica, in the background."""
    precision = sent_precision(sync)
    fragment = encoded_bytes(-(-count // sync.every_steps), precision)
    if sync.replica == "host":
        num_peers = placement.num_hosts - 1
        sent, peers = num_peers * fragment, f"{num_peers} other host{'s' if num_peers > 1 else ''}"
    else:
        sent = _leaving_swap(fragment, placement)
        peers = f"{placement.ranks_per_host * (placement.num_ranks - placement.ranks_per_host)} pairs of ranks"
    scale = f" with a scale of {SCALE_BYTES} bytes per {BLOCKS[precision]}" if precision in BLOCKS else ""
    width = "1 bit" if BITS[precision] == 1 else f"{BITS[precision]} bits"
    formula = f"{format_count(count)} weights / {sync.every_steps} steps x {width}{scale} x {peers}"
    traffic = Traffic((Message(sent),), formula, True, sync.delay_steps, num_waits=1)
    return _stated(traffic, placement)


def _leaving_ring(num_bytes: int, placement: Placement) -> int:
    """A ring crosses each host's port once each way, however many ranks the host has."""
    return 0 if placement.num_hosts == 1 else ring_bytes(num_bytes, placement.num_ranks)


def _leaving_swap(chunk_bytes: int, placement: Placement) -> int:
    """Straight from rank to rank: all pairs of a rank here and a rank elsewhere share the port."""
    return placement.ranks_per_host * (placement.num_ranks - placement.ranks_per_host) * chunk_bytes


def _ring(placement: Placement) -> str:
    return f"2({placement.num_ranks}-1)/{placement.num_ranks}"


def _stated(traffic: Traffic, placement: Placement) -> Traffic:
    """The formula with its result."""
    result = "nothing leaves the one host" if placement.num_hosts == 1 else format_bytes(traffic.sent_bytes)
    text = result if placement.num_hosts == 1 else f"{traffic.formula} = {result}"
    return Traffic(traffic.messages, text, traffic.is_background, traffic.delay_steps, traffic.num_waits)
