"""The figures of several runs, a row each: where a step's time goes, bytes, link, learning, cost. No formatting."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dragoman.diagnose.comparison.quality import Quality, Reading
from dragoman.diagnose.comparison.side import Side
from dragoman.diagnose.comparison.speed import SAME_STEP
from dragoman.run.figures import best_by_bleu, best_by_loss
from dragoman.run.records import EvalRecord
from dragoman.units import format_count, format_seconds

Kind = Literal["seconds", "rate", "share", "bytes", "bits", "count", "loss", "score", "money", "duration"]
Entry = tuple[str, str, Kind, Callable[[Side], float | None]]  # name, unit, kind, value of a run

STEP, PER_TOKENS, EXCHANGE = "A step", "1,000 target tokens", "Bytes and link"
PER_TOKEN_UNIT = "s/1000 target tokens"
LEARNED, COST = "Learning", "Time and cost"
PART_NAMES = {
    "compute": "compute",
    "waiting": "waiting for slowest rank",
    "transfer": "transfer",
    "data": "waiting for data",
    "optimizer": "optimizer",
    "other": "other",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One quantity of every run; None is what is not known. `unit` is what a script needs, `kind` what a table does."""

    group: str
    name: str
    unit: str
    kind: Kind
    values: tuple[float | None, ...]
    is_between: tuple[bool, ...] = ()  # read on the line between two evaluations; () is nowhere


def figures_of(sides: Sequence[Side], quality: Quality) -> list[Figure]:
    """Rows that no run has a value for are left out."""
    rows = [*_step_rows(sides), *_exchange_rows(sides), *_learning_rows(sides, quality), *_cost_rows(sides, quality)]
    return [row for row in rows if any(value is not None for value in row.values)]


def have_equal_steps(sides: Sequence[Side]) -> bool:
    known = [side.step_tokens for side in sides if side.step_tokens]
    return not known or max(known) <= SAME_STEP * min(known)


def _rows(sides: Sequence[Side], group: str, *entries: Entry) -> list[Figure]:
    rows: list[Figure] = []
    for name, unit, kind, of in entries:
        values = [of(side) for side in sides]
        known = tuple(float(value) if value is not None and np.isfinite(value) else None for value in values)
        rows.append(Figure(group, name, unit, kind, known))
    return rows


def _step_rows(sides: Sequence[Side]) -> list[Figure]:
    whole = _rows(
        sides,
        STEP,
        ("step time", "s/step", "seconds", lambda side: side.step_seconds),
        ("steps per second", "steps/s", "rate", lambda side: 1 / side.step_seconds if side.step_seconds else None),
    )
    parts: list[Entry] = []
    for part, name in PART_NAMES.items():
        parts.append((name, "s/step", "seconds", lambda side, part=part: _part(side, part)))
        parts.append((f"{name}, share", "of 1", "share", lambda side, part=part: _part_share(side, part)))
    size: Entry = ("target tokens in a step", "tokens/step", "count", lambda side: side.step_tokens)
    speed: Entry = ("target tokens per second", "tokens/s", "count", lambda side: side.facts.target_tokens_per_second)
    per_tokens = [] if have_equal_steps(sides) else _per_token_rows(sides)
    return [*whole, *_rows(sides, STEP, *parts, size), *per_tokens, *_rows(sides, STEP, speed)]


def _per_token_rows(sides: Sequence[Side]) -> list[Figure]:
    entries: list[Entry] = [
        (name, PER_TOKEN_UNIT, "seconds", lambda side, part=part: _per_tokens(side, _part(side, part)))
        for part, name in PART_NAMES.items()
    ]
    whole: Entry = ("all", PER_TOKEN_UNIT, "seconds", lambda side: _per_tokens(side, side.step_seconds))
    return _rows(sides, PER_TOKENS, *entries, whole)


def _part(side: Side, part: str) -> float | None:
    return side.parts[part] if side.parts else None


def _part_share(side: Side, part: str) -> float | None:
    return side.parts[part] / side.step_seconds if side.parts and side.step_seconds else None


def _per_tokens(side: Side, seconds: float | None) -> float | None:
    return 1000 * seconds / side.step_tokens if seconds is not None and side.step_tokens else None


def _exchange_rows(sides: Sequence[Side]) -> list[Figure]:
    def of_link(name: str, factor: float = 1.0) -> Callable[[Side], float | None]:
        def value(side: Side) -> float | None:
            found = getattr(side.facts.link, name, None)
            return factor * found if found is not None else None

        return value

    return _rows(
        sides,
        EXCHANGE,
        ("out of each host", "B/step", "bytes", of_link("step_bytes")),
        ("least time for them", "s/step", "seconds", of_link("floor_seconds")),
        ("link carries, both ways at once", "bit/s", "bits", of_link("capacity", 8)),
        ("link carries, one way alone", "bit/s", "bits", of_link("alone", 8)),
        ("card says", "bit/s", "bits", of_link("claimed_bits")),
    )


def _learning_rows(sides: Sequence[Side], quality: Quality) -> list[Figure]:
    def at(name: str, unit: str, kind: Kind, read: Callable[[int], Reading | None]) -> Figure:
        readings = [read(number) for number in range(len(sides))]
        values = tuple(reading.value if reading else None for reading in readings)
        is_between = tuple(reading is not None and not reading.is_exact for reading in readings)
        # One value alone has nothing to be compared with.
        is_shared = sum(value is not None for value in values) > 1
        return Figure(LEARNED, name, unit, kind, values if is_shared else (None,) * len(values), is_between)

    rows: list[Figure] = []
    if quality.common_tokens is not None:
        where = f"after {format_count(quality.common_tokens)} target tokens"
        rows.append(at(f"dev loss {where}", "nats/token", "loss", quality.loss_at_tokens))
        rows.append(at(f"BLEU {where}", "BLEU", "score", quality.bleu_at_tokens))
    if quality.common_seconds is not None:
        where = f"after {format_seconds(quality.common_seconds)} of training"
        rows.append(at(f"dev loss {where}", "nats/token", "loss", quality.loss_at_seconds))
        rows.append(at(f"BLEU {where}", "BLEU", "score", quality.bleu_at_seconds))
    rows += [
        _best_row("best dev loss", "nats/token", "loss", quality, lambda curve: _loss(best_by_loss(curve))),
        _best_row("step of the best dev loss", "step", "count", quality, lambda curve: _step(best_by_loss(curve))),
        _best_row("best BLEU", "BLEU", "score", quality, lambda curve: _bleu(best_by_bleu(curve))),
        _best_row("step of the best BLEU", "step", "count", quality, lambda curve: _step(best_by_bleu(curve))),
    ]
    return rows


def _best_row(
    name: str, unit: str, kind: Kind, quality: Quality, of: Callable[[Sequence[EvalRecord]], float | None]
) -> Figure:
    """Each run's own, comparable or not: the notes say which it is."""
    return Figure(LEARNED, name, unit, kind, tuple(of(footing.curve.evals) for footing in quality.footings))


def _loss(record: EvalRecord | None) -> float | None:
    return record.loss if record else None


def _bleu(record: EvalRecord | None) -> float | None:
    return record.bleu if record else None


def _step(record: EvalRecord | None) -> float | None:
    return float(record.step) if record else None


def _cost_rows(sides: Sequence[Side], quality: Quality) -> list[Figure]:
    best = {
        side.name: _bleu(best_by_bleu(footing.curve.evals))
        for side, footing in zip(sides, quality.footings, strict=True)
    }
    currency = next((side.facts.currency for side in sides if side.facts.currency), None) or "$"

    def per_point(side: Side) -> float | None:
        cost, bleu = cost_of(side), best[side.name]
        return cost / bleu if cost is not None and bleu else None

    return _rows(
        sides,
        COST,
        ("steps", "steps", "count", lambda side: float(len(side.facts.steps))),
        ("target tokens", "tokens", "count", lambda side: float(np.nansum(side.facts.steps.target_tokens))),
        ("training, steps alone", "s", "duration", lambda side: float(np.nansum(side.facts.steps.seconds))),
        ("whole run", "s", "duration", lambda side: side.facts.duration_seconds),
        ("cost", currency, "money", cost_of),
        ("cost per BLEU point", f"{currency}/BLEU", "money", per_point),
    )


def cost_of(side: Side) -> float | None:
    """Machines alone, for the time the run worked, evaluations included."""
    price = side.facts.price_per_second
    return price * side.facts.duration_seconds if price is not None else None
