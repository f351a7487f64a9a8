"""What a host is doing, once a second: one line of `system.HOST.jsonl`. Facts only; None is what could not be read."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

# Larger numbers are damage, and more than what computes and draws with them can hold.
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]
Seconds = Annotated[float, Field(ge=-1e12, le=1e12)]


@dataclass(frozen=True, slots=True)
class CardSample:
    """One network card; counts are those of the interval."""

    name: str
    sent_bytes: Whole
    received_bytes: Whole
    sent_packets: Whole
    received_packets: Whole
    num_drops: Whole  # dropped or damaged, both directions
    bits_per_second: Whole | None = None  # what the card says its link runs at


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU, as NVML sees it. `busy` is the share of the interval in which any kernel ran, waiting ones included."""

    index: Whole
    busy: float | None = None  # 0 to 1
    memory_used_bytes: Whole | None = None
    memory_total_bytes: Whole | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    clock_mhz: Whole | None = None
    max_clock_mhz: Whole | None = None
    temperature_celsius: Whole | None = None
    throttle_reasons: tuple[str, ...] = ()  # why it does not run at its full clock, idling left out


@dataclass(frozen=True, slots=True)
class SystemSample:
    """One host over one interval."""

    attempt: Whole
    time: Seconds  # unix seconds at the end of the interval, by this host's clock
    host: str
    interval_seconds: Seconds
    cpu_busy: float | None = None  # 0 to 1, of all cores
    memory_used_bytes: Whole | None = None
    memory_total_bytes: Whole | None = None
    disk_read_bytes: Whole | None = None
    disk_written_bytes: Whole | None = None
    disk_free_bytes: Whole | None = None  # where the run folder lies
    cards: tuple[CardSample, ...] = ()
    gpus: tuple[GpuSample, ...] = ()
    num_dropped: Whole = 0  # readings of the interval that cannot be true
