"""Tables of machines: what each host did, and what was promised against what happened. Knows no HTML."""

import math

from dragoman.diagnose.answers.duration import account_of
from dragoman.diagnose.facts import Facts
from dragoman.diagnose.link import cards_of
from dragoman.diagnose.machine_series import HostSeries
from dragoman.diagnose.statistics import Floats, finite_mean
from dragoman.diagnose.wording import bits_text, money, percent, seconds_text
from dragoman.report.masthead import NOT_RECORDED
from dragoman.report.tables import Table
from dragoman.run.promise import Prediction
from dragoman.run.records import Host
from dragoman.units import format_bytes, format_seconds, plural

WORK_STAGES = ("train", "evaluate", "save")  # those that are part of a run
DASH = "–"
BUSY_COLUMNS = ("Cores busy", "GPUs busy")


def host_table(facts: Facts) -> Table | None:
    """A row a host: its ranks, the card that carried the exchange, and means over the samples."""
    manifest = facts.run.manifest
    series = {host.host: host for host in facts.hosts}
    known = {host.name: host for host in manifest.hosts}
    names = list(dict.fromkeys([*known, *series]))
    if not names:
        return None
    columns = (
        "Host",
        "Processors",
        "Ranks",
        "Exchange over",
        "Card says",
        "Sent",
        "Received",
        "Cores busy",
        "GPUs busy",
    )
    cards = cards_of(facts.run)
    rows = [_host_row(name, known.get(name), series.get(name), cards.get(name)) for name in names]
    return Table(columns, rows, num_text=2)


def _host_row(name: str, host: Host | None, series: HostSeries | None, card: str | None) -> tuple[str, ...]:
    gpus = ", ".join(f"{host.gpus.count(gpu)} × {gpu}" for gpu in dict.fromkeys(host.gpus)) if host else ""
    cores = f"{host.num_cores} cores" if host and host.num_cores else ""
    used = card or (f"{series.card} (the busiest)" if series and series.card else DASH)
    claimed = (host.card_bits_per_second if host else None) or (series.card_bits_per_second if series else None)
    return (
        name,
        gpus or cores or DASH,
        str(host.num_ranks) if host and host.num_ranks else DASH,
        used,
        bits_text(claimed) if claimed else DASH,
        _rate(series.sent_rate) if series else "no samples",
        _rate(series.received_rate) if series else "no samples",
        _share(series.cpu_busy) if series else "no samples",
        _share(series.gpu_busy) if series else "no samples",
    )


def hosts_without_samples(facts: Facts) -> list[str]:
    sampled = {host.host for host in facts.hosts}
    return [host.name for host in facts.run.manifest.hosts if host.name not in sampled]


def _rate(values: Floats) -> str:
    mean = finite_mean(values)
    return f"{format_bytes(mean)}/s" if mean is not None else DASH


def _share(values: Floats) -> str:
    mean = finite_mean(values)
    return percent(mean) if mean is not None else DASH


def prediction_table(facts: Facts) -> Table | None:
    """What the plan promised, what the records say, and one over the other; None without a prediction."""
    promise = facts.run.prediction
    if promise is None:
        return None
    split, link = facts.split, facts.link
    done = facts.num_steps / promise.num_steps if promise.num_steps else 0.0
    steps = f"{facts.num_steps:,} steps"
    price = facts.run.manifest.price_per_hour
    cost = promise.cost.machines * _working_share(promise) * done if promise.cost.machines else None
    exchange = split.waiting_seconds + split.transfer_seconds if split else None
    spent = facts.duration_seconds or None
    since_first_step = spent - account_of(facts).start if spent else None
    entries: list[tuple[str, float | None, float | None, str]] = [
        ("Step time", promise.step.total_seconds, _step_seconds(facts), "seconds"),
        ("Computing in a step", promise.step.compute_seconds, split.compute_seconds if split else None, "seconds"),
        ("Exchange in a step", promise.step.exchange_seconds, exchange, "seconds"),
        ("Optimizer in a step", promise.step.optimizer_seconds, split.optimizer_seconds if split else None, "seconds"),
        ("Bytes out of a host in a step", promise.sent_bytes or None, link.step_bytes if link else None, "bytes"),
        (f"Run time, {steps}", _working_seconds(promise) * done or None, since_first_step, "long"),
        ("Cost of the machines", cost, price * spent / 3600 if price and spent else None, "money"),
    ]
    currency = facts.currency or promise.cost.currency
    rows = [_compared(name, before, after, kind, currency) for name, before, after, kind in entries]
    return Table(("", "Predicted", "Measured", "Measured over predicted"), rows)


def prediction_caption(promise: Prediction, num_steps: int) -> str:
    how = "from a measured profile" if promise.is_measured else "estimated from tables, before anything was measured"
    text = (
        f"Predicted for {plural(promise.num_hosts, 'host')} with {promise.method}, {how}. Run time counts from step 1."
    )
    if promise.num_steps and num_steps != promise.num_steps:
        text += f" It was made for {promise.num_steps:,} steps and is scaled to the {num_steps:,} that were done."
    return text


def _step_seconds(facts: Facts) -> float | None:
    return facts.split.step_seconds if facts.split and facts.split.step_seconds > 0 else facts.mean_step_seconds


def _working_seconds(promise: Prediction) -> float:
    """Without download, preparation and push, which no run folder records."""
    stages = [stage.seconds for stage in promise.timeline if stage.name in WORK_STAGES]
    return sum(stages) if stages else promise.train_seconds


def _working_share(promise: Prediction) -> float:
    """Of the time that was priced: machines are rented while data is pushed too."""
    paid = sum(stage.seconds for stage in promise.timeline if stage.name not in ("download", "prepare"))
    return _working_seconds(promise) / paid if paid > 0 else 1.0


def _compared(name: str, before: float | None, after: float | None, kind: str, currency: str | None) -> tuple[str, ...]:
    is_both = before is not None and after is not None and before > 0 and math.isfinite(after)
    ratio = f"{after / before:.2f}" if is_both and before and after is not None else DASH
    return name, _text(before, kind, currency), _text(after, kind, currency), ratio


def _text(value: float | None, kind: str, currency: str | None) -> str:
    if value is None or not math.isfinite(value):
        return NOT_RECORDED
    if kind == "seconds":
        return seconds_text(value)
    if kind == "bytes":
        return format_bytes(value)
    return money(value, currency) if kind == "money" else format_seconds(value)
