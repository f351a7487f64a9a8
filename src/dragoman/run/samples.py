"""What a host is doing, once a second: one line of `system.HOST.jsonl`. Facts only; None is what could not be read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CardSample:
    """One network card; counts are those of the interval."""

    name: str
    sent_bytes: int
    received_bytes: int
    sent_packets: int
    received_packets: int
    num_drops: int  # dropped or damaged, both directions
    bits_per_second: int | None = None  # what the card says its link runs at


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU, as NVML sees it. `busy` is the share of the interval in which any kernel ran, waiting ones included."""

    index: int
    busy: float | None = None  # 0 to 1
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    clock_mhz: int | None = None
    max_clock_mhz: int | None = None
    temperature_celsius: int | None = None
    throttle_reasons: tuple[str, ...] = ()  # why it does not run at its full clock, idling left out


@dataclass(frozen=True, slots=True)
class SystemSample:
    """One host over one interval."""

    attempt: int
    time: float  # unix seconds at the end of the interval, by this host's clock
    host: str
    interval_seconds: float
    cpu_busy: float | None = None  # 0 to 1, of all cores
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_written_bytes: int | None = None
    disk_free_bytes: int | None = None  # where the run folder lies
    cards: tuple[CardSample, ...] = ()
    gpus: tuple[GpuSample, ...] = ()
    num_dropped: int = 0  # readings of the interval that cannot be true
