"""The network of a run as numbers: what left each host in a step, what the link carries, what a faster one gives."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from dragoman.config import ModelConfig, SyncConfig
from dragoman.diagnose.machine_series import HostSeries
from dragoman.diagnose.series import TimingGrid
from dragoman.diagnose.split import Split
from dragoman.diagnose.statistics import Floats, finite_median
from dragoman.plan.hints import CARD_SHARE, SUM_SHARE
from dragoman.plan.shapes import parameters_of
from dragoman.plan.traffic import Placement, method_name, traffic_of
from dragoman.run.reader import RunRecord

CapacitySource = Literal["measured before the run", "highest rate seen in the run", ""]
MEASURED: CapacitySource = "measured before the run"
BytesSource = Literal["the network card's count", "the exchange's own count", "the formula", ""]
FULL = 0.9  # of the capacity
BOUND = 0.25  # share of a step waiting for bytes from which the network limits it
FELT = 0.10  # and from which it is felt


@dataclass(frozen=True)
class Link:
    """Rates are bytes a second out of a host, while as much comes in. None is what is not known."""

    num_hosts: int
    num_ranks: int
    method: str  # dense fp32, diloco sign every 4
    step_bytes: float | None  # out of each host in a step
    bytes_source: BytesSource
    counted_bytes: float | None  # by the exchange
    card_bytes: float | None  # by the card
    formula: str
    formula_bytes: float | None
    capacity: float | None
    capacity_source: CapacitySource
    alone: float | None  # one way only
    claimed_bits: float | None  # what the card says
    cards: dict[str, str]
    is_card_right: bool  # False: the card's count is far below the exchange's
    num_impossible: int  # counter readings left out
    full_share: float | None  # of the seconds of training, above 90 % of the capacity; None where a step is too short
    mean_sent_rate: float | None  # sampled, of the host that sends most
    bytes_vary: bool

    @property
    def floor_seconds(self) -> float | None:
        """The least time the bytes of a step can take."""
        return self.step_bytes / self.capacity if self.step_bytes and self.capacity else None

    @property
    def is_sum_limited(self) -> bool:
        """Both ways at once carry little more together than one way alone."""
        if not (self.alone and self.capacity and self.is_measured):
            return False
        return self.capacity < SUM_SHARE * self.alone

    @property
    def is_below_card(self) -> bool:
        """The link carries far less than its card says."""
        carried = self.alone or self.capacity
        if not (carried and self.claimed_bits and self.is_measured):
            return False
        return 8 * carried < CARD_SHARE * self.claimed_bits

    @property
    def is_measured(self) -> bool:
        return self.capacity_source == MEASURED


def link_of(run: RunRecord, grid: TimingGrid | None, hosts: tuple[HostSeries, ...], num_hosts: int) -> Link | None:
    """None on one machine."""
    if num_hosts < 2:
        return None
    sync = sync_in_force(run)
    formula, formula_bytes = _formula(run, sync, num_hosts)
    counted, card = _bytes_per_step(grid, sync)
    is_card_right = card is None or counted is None or card > 0.5 * counted
    step_bytes, source = _best_count(card if is_card_right else None, counted, formula_bytes)
    capacity, capacity_source, alone = _capacity(run, hosts)
    busiest = max(hosts, key=lambda host: finite_median(host.sent_rate) or 0.0, default=None)
    sent = np.nansum(grid.sent_bytes, axis=1) if grid else np.zeros(0)
    return Link(
        num_hosts=num_hosts,
        num_ranks=run.manifest.world_size,
        method=exchange_name(run),
        step_bytes=step_bytes,
        bytes_source=source,
        counted_bytes=counted,
        card_bytes=card,
        formula=formula,
        formula_bytes=formula_bytes,
        capacity=capacity,
        capacity_source=capacity_source,
        alone=alone,
        claimed_bits=_claimed_bits(run, hosts),
        cards=cards_of(run) or {host.host: host.card for host in hosts if host.card},
        is_card_right=is_card_right,
        num_impossible=sum(host.num_impossible for host in hosts),
        full_share=_full_share(busiest, grid, capacity),
        mean_sent_rate=finite_median(busiest.sent_rate) if busiest else None,
        bytes_vary=len(sent) > 20 and bool(np.quantile(sent, 0.9) > 1.2 * max(np.quantile(sent, 0.1), 1)),
    )


def step_seconds_at(link: Link, split: Split, factor: float) -> float:
    """The step on a link `factor` times as fast. What is not bandwidth (latency, arithmetic) stays; what computing
    hides today it hides then."""
    exposed = split.transfer_seconds
    floor = link.floor_seconds
    bandwidth = min(floor, split.step_seconds) if floor is not None else exposed
    whole = max(exposed, bandwidth)
    hidden = whole - exposed
    faster = max(0.0, whole - bandwidth * (1 - 1 / factor) - hidden)
    return split.step_seconds - exposed + faster


def is_bandwidth(link: Link, split: Split) -> bool:
    """Whether bytes over capacity explain the waiting; else it is latency, or arithmetic of the exchange."""
    floor = link.floor_seconds
    return floor is None or floor >= 0.4 * split.transfer_seconds


def cards_of(run: RunRecord) -> dict[str, str]:
    """Host -> the card that carries the exchange, where the run says so."""
    named = {host.name: host.interface for host in run.manifest.hosts if host.interface}
    probed = run.profile.link.interfaces if run.profile and run.profile.link else {}
    return {**probed, **named}


def sync_in_force(run: RunRecord) -> SyncConfig | None:
    """What the ranks exchanged, as the manifest has it; None where it says nothing that this version knows."""
    try:
        return SyncConfig.model_validate(run.manifest.exchange.settings) if run.manifest.exchange else None
    except ValidationError:
        return None


def exchange_name(run: RunRecord) -> str:
    """`dense fp32`, `diloco sign every 4`."""
    sync = sync_in_force(run)
    return method_name(sync) if sync is not None else "exchange"


def _formula(run: RunRecord, sync: SyncConfig | None, num_hosts: int) -> tuple[str, float | None]:
    """Bytes out of each host in a step, in words and as a number; ('', None) where neither plan nor records tell."""
    if run.prediction and run.prediction.formula and run.prediction.sent_bytes > 0:
        return run.prediction.formula, float(run.prediction.sent_bytes)
    model, vocab_size = run.manifest.recipe.get("model"), run.manifest.data.vocab_size
    if sync is None or sync.method == "auto" or vocab_size <= 0:
        return "", None
    try:
        parameters = parameters_of(ModelConfig.model_validate(model), vocab_size)
    except ValidationError:
        return "", None
    traffic = traffic_of(sync, parameters, Placement(num_hosts, max(num_hosts, run.manifest.world_size)))
    return traffic.formula, float(traffic.sent_bytes)


def _bytes_per_step(grid: TimingGrid | None, sync: SyncConfig | None) -> tuple[float | None, float | None]:
    """(by the exchange's count, by the card's), of the host that sends most, in a typical step."""
    if grid is None:
        return None, None
    columns: dict[str, list[int]] = {}
    for column, host in enumerate(grid.hosts):
        columns.setdefault(host, []).append(column)
    # A ring crosses each host's card once, however many ranks it has; other methods send from every rank.
    is_ring = sync is None or sync.method in ("dense", "powersgd")
    counted: list[float] = []
    for own in columns.values():
        remote = (len(grid.hosts) - len(own)) / max(len(grid.hosts) - 1, 1)
        by_step = np.nansum(grid.sent_bytes[:, own], axis=1)
        counted.append(_typical(by_step / len(own) if is_ring else by_step * remote))
    cards = [_typical(grid.card_sent_bytes[:, own[0]]) for own in columns.values()]
    cards = [value for value in cards if value > 0]
    return max(counted, default=0.0) or None, max(cards, default=None)


def _best_count(
    card: float | None, counted: float | None, formula_bytes: float | None
) -> tuple[float | None, BytesSource]:
    """The card's count is the truth, unless it holds far more than the exchange can have sent."""
    if card and (not counted or card < 10 * counted):
        return card, "the network card's count"
    if counted:
        return counted, "the exchange's own count"
    return (formula_bytes, "the formula") if formula_bytes else (None, "")


def _typical(values: Floats) -> float:
    return finite_median(values) or 0.0


def _capacity(run: RunRecord, hosts: tuple[HostSeries, ...]) -> tuple[float | None, CapacitySource, float | None]:
    link = run.profile.link if run.profile else None
    if link is not None and link.bytes_per_second > 0:
        return link.bytes_per_second, MEASURED, link.alone_bytes_per_second
    measured = run.manifest.exchange.measured.get("bytes_per_second") if run.manifest.exchange else None
    if measured and measured > 0:
        return float(measured), MEASURED, None
    rates = [host.sent_rate[np.isfinite(host.sent_rate)] for host in hosts]
    rates = [rate for rate in rates if len(rate) >= 20]
    best = max((float(np.quantile(rate, 0.99)) for rate in rates), default=0.0)
    return (best, "highest rate seen in the run", None) if best > 0 else (None, "", None)


def _claimed_bits(run: RunRecord, hosts: tuple[HostSeries, ...]) -> float | None:
    """The slowest card's claim."""
    claims = [host.card_bits_per_second for host in run.manifest.hosts if host.card_bits_per_second]
    if not claims and run.profile and run.profile.link:
        claims = [bits for bits in run.profile.link.card_bits_per_second.values() if bits]
    if not claims:
        claims = [bits for host in hosts if (bits := host.card_bits_per_second)]
    return float(min(claims)) if claims else None


def _full_share(host: HostSeries | None, grid: TimingGrid | None, capacity: float | None) -> float | None:
    """Share of the sampled seconds of training with either direction above 90 % of the capacity.

    A sample is a second: where a step is not longer than two, it mixes the full and the idle part of a step."""
    if host is None or capacity is None or (grid is not None and _typical(grid.step_seconds.ravel()) < 2.0):
        return None
    rates = np.fmax(host.sent_rate, host.received_rate)
    is_counted = np.isfinite(rates) & (is_training(host.time, grid) if grid else np.ones(len(rates), dtype=bool))
    return float((rates[is_counted] > FULL * capacity).mean()) if int(is_counted.sum()) >= 10 else None


def is_training(times: Floats, grid: TimingGrid) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Whether a moment lies in a step, and not in validation, a checkpoint or before and after the run."""
    ends = np.fmax.reduce(grid.time, axis=1)
    pauses = np.fmax.reduce(np.nan_to_num(grid.parts["validation"]) + np.nan_to_num(grid.parts["checkpoint"]), axis=1)
    order = np.argsort(ends)
    ends, pauses = ends[order], pauses[order]
    step = np.searchsorted(ends, times)
    is_inside = (step < len(ends)) & (step > 0)
    following = np.minimum(step, len(ends) - 1)
    return is_inside & (times < ends[following] - pauses[following])
