"""Second-by-second samples of the hosts as arrays: processors, memory, GPUs, the card of the exchange. No verdicts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dragoman.diagnose.series import clock_offsets_of
from dragoman.diagnose.statistics import Floats
from dragoman.run.records import Event
from dragoman.run.samples import CardSample, GpuSample, SystemSample

NAN = float("nan")
# A counter may be read a little late or early, which moves bytes between two intervals.
READING_TOLERANCE = 1.25


@dataclass(frozen=True)
class HostSeries:
    """One host; rates are bytes a second of the card that carries the exchange. NaN is what was not read."""

    host: str
    time: Floats  # by the first host's clock, at the end of the interval
    cpu_busy: Floats
    memory_share: Floats
    sent_rate: Floats
    received_rate: Floats
    card: str | None
    is_card_known: bool  # False: nothing names the card, so the busiest one was taken
    card_bits_per_second: float | None
    gpu_busy: Floats  # mean over its GPUs
    gpu_memory_share: Floats  # fullest GPU
    gpu_clock_share: Floats  # slowest GPU, of its full clock
    gpu_throttled: NDArray[np.bool_]  # some GPU that works does not run at its full clock
    throttle_reasons: Counter[str] = field(default_factory=Counter[str])
    num_impossible: int = 0  # readings left out


def host_series(
    samples: Sequence[SystemSample], events: Sequence[Event], cards: Mapping[str, str]
) -> tuple[HostSeries, ...]:
    """Every host that left samples; `cards` names the exchange's card of each, as far as it is known."""
    by_host: dict[str, list[SystemSample]] = {}
    for sample in samples:
        by_host.setdefault(sample.host, []).append(sample)
    return tuple(_one_host(host, rows, events, cards.get(host)) for host, rows in by_host.items())


def _one_host(host: str, rows: Sequence[SystemSample], events: Sequence[Event], card: str | None) -> HostSeries:
    times = np.array([row.time for row in rows], dtype=np.float64)
    moments, offsets = clock_offsets_of(host, events)
    if len(moments):
        times = times - offsets[np.maximum(np.searchsorted(moments, times, side="right") - 1, 0)]
    name = card or _busiest_card(rows)
    readings = [_card(row, name) for row in rows]
    interval = np.array([row.interval_seconds if row.interval_seconds > 0 else NAN for row in rows])
    claims = [reading.bits_per_second for reading in readings if reading and reading.bits_per_second]
    claimed = float(max(claims)) if claims else None
    sent, num_sent = _rates([r.sent_bytes if r else None for r in readings], interval, claimed)
    received, num_received = _rates([r.received_bytes if r else None for r in readings], interval, claimed)
    gpus = [_gpu_figures(row.gpus) for row in rows]
    table = np.array(gpus, dtype=np.float64).reshape(len(rows), 4)
    return HostSeries(
        host=host,
        time=times,
        cpu_busy=np.array([row.cpu_busy for row in rows], dtype=np.float64),
        memory_share=np.array([_share(row.memory_used_bytes, row.memory_total_bytes) for row in rows]),
        sent_rate=sent,
        received_rate=received,
        card=name,
        is_card_known=card is not None,
        card_bits_per_second=claimed,
        gpu_busy=table[:, 0],
        gpu_memory_share=table[:, 1],
        gpu_clock_share=table[:, 2],
        gpu_throttled=table[:, 3] > 0,
        throttle_reasons=Counter(reason for row in rows for gpu in row.gpus for reason in gpu.throttle_reasons),
        num_impossible=num_sent + num_received + sum(row.num_dropped for row in rows),
    )


def _busiest_card(rows: Sequence[SystemSample]) -> str | None:
    sent: Counter[str] = Counter()
    for row in rows:
        sent.update({card.name: card.sent_bytes for card in row.cards if card.name != "lo"})
    return sent.most_common(1)[0][0] if sent else None


def _card(row: SystemSample, name: str | None) -> CardSample | None:
    return next((card for card in row.cards if card.name == name), None)


def _rates(counts: Sequence[int | None], interval: Floats, claimed_bits: float | None) -> tuple[Floats, int]:
    """Bytes a second, and how many readings were left out because no such card carries so much."""
    rates = np.array(counts, dtype=np.float64) / interval
    limit = READING_TOLERANCE * claimed_bits / 8 if claimed_bits else np.inf
    is_impossible = (rates < 0) | (rates > limit)
    return np.where(is_impossible, NAN, rates), int(is_impossible.sum())


def _gpu_figures(gpus: Sequence[GpuSample]) -> tuple[float, float, float, float]:
    """(mean busy, fullest memory, lowest clock share, whether one that works is throttled)."""
    if not gpus:
        return NAN, NAN, NAN, 0.0
    busy = [gpu.busy for gpu in gpus if gpu.busy is not None]
    memory = [_share(gpu.memory_used_bytes, gpu.memory_total_bytes) for gpu in gpus]
    clocks = [_share(gpu.clock_mhz, gpu.max_clock_mhz) for gpu in gpus]
    is_throttled = any(gpu.throttle_reasons and (gpu.busy is None or gpu.busy > 0.5) for gpu in gpus)
    return (
        sum(busy) / len(busy) if busy else NAN,
        max((share for share in memory if share == share), default=NAN),
        min((share for share in clocks if share == share), default=NAN),
        float(is_throttled),
    )


def _share(part: int | None, whole: int | None) -> float:
    return part / whole if part is not None and whole else NAN
