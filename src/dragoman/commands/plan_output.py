"""What `dragoman plan` shows: short tables, each under one line that says what it is."""

import dataclasses
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dragoman.plan.checkpoint import classic_bytes
from dragoman.plan.microbatches import microbatch_tokens
from dragoman.plan.setting import Setting
from dragoman.plan.whatif import limit_of
from dragoman.run.promise import Prediction, WhatIf
from dragoman.units import (
    format_bit_rate,
    format_bytes,
    format_bytes_both,
    format_money,
    format_seconds,
    format_step_time,
)

PLANNED = "as planned"
NARROWEST = 100  # a pipe has no width of its own


def to_json(prediction: Prediction) -> str:
    return json.dumps(dataclasses.asdict(prediction), indent=2, ensure_ascii=False)


def print_prediction(prediction: Prediction, setting: Setting, out: Path) -> None:
    """Heading, tables, assumptions, and where all of it was written."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, NARROWEST))

    def say(text: str = "", style: str = "") -> None:
        console.print(text, style=style or None, markup=False, highlight=False)

    kind = "measured" if prediction.is_measured else "estimated"
    say(f"{prediction.recipe} on {setting.machines}, {prediction.method}: {kind}", style="bold")
    say(prediction.line)
    say()
    for title, table in (
        ("A step", _step_table(prediction, setting)),
        ("The run", _timeline_table(prediction)),
        ("The same text, done otherwise (training alone)", _what_if_table(prediction)),
        ("A checkpoint", _checkpoint_table(prediction, setting)),
    ):
        say(title, style="bold")
        console.print(table)
        say()
    for line in _closing_lines(prediction):
        say(line)
    for note in prediction.notes:
        say(f"note: {note}")
    say(f"{out} written")


def _table(*columns: str) -> Table:
    """Names to the left, numbers to the right, the last column for words."""
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in table.columns[1:-1]:
        column.justify = "right"
        column.no_wrap = True
    table.columns[0].no_wrap = True
    return table


def _step_table(prediction: Prediction, setting: Setting) -> Table:
    step = prediction.step
    table = _table("part", "time", "share", "")
    rows = [
        ("compute", step.compute_seconds, "forward, backward, arithmetic of the exchange"),
        ("waiting for the exchange", step.exchange_seconds, "what computing does not hide"),
        ("optimizer", step.optimizer_seconds, ""),
        ("data", step.data_seconds, "read ahead"),
    ]
    for name, seconds, words in rows:
        share = f"{100 * seconds / step.total_seconds:.1f} %" if step.total_seconds else ""
        table.add_row(name, _seconds(seconds), share, words)
    low, high = _seconds(prediction.low_step_seconds), _seconds(prediction.high_step_seconds)
    both = format_step_time(step.total_seconds)
    table.add_row("all", _seconds(step.total_seconds), "", f"{both}; between {low} and {high}", style="bold")
    number = setting.recipe.batch.num_microbatches
    words = f"of {microbatch_tokens(setting.recipe, number):,} target tokens, {setting.pieces_per_rank} a rank"
    table.add_row("microbatches", str(number), "", words)
    sent = format_bytes(prediction.sent_bytes) if prediction.sent_bytes else "0 MB"
    table.add_row("bytes each way", sent, "", prediction.formula)
    if prediction.floor_seconds is not None and prediction.bytes_per_second is not None:
        rate = prediction.bytes_per_second
        words = f"{sent} / {format_bytes(rate)}/s ({format_bit_rate(8 * rate)}): the least their way takes"
        table.add_row("floor of the link", _seconds(prediction.floor_seconds), "", words)
    return table


def _timeline_table(prediction: Prediction) -> Table:
    table = _table("stage", "time", "how it is known")
    for stage in prediction.timeline:
        table.add_row(stage.name, format_seconds(stage.seconds), stage.how)
    epochs = "" if prediction.num_epochs is None else f"; {prediction.num_epochs:.1f} epochs"
    table.add_row(
        "all", format_seconds(prediction.total_seconds), f"{prediction.num_steps:,} steps{epochs}", style="bold"
    )
    cost = prediction.cost
    parts = [("machines", cost.machines), ("traffic", cost.traffic), ("storage", cost.storage)]
    named = [f"{name} {format_money(amount, cost.currency)}" for name, amount in parts if amount is not None]
    if cost.total is not None:
        table.add_row("cost", format_money(cost.total, cost.currency), ", ".join(named), style="bold")
    return table


def _what_if_table(prediction: Prediction) -> Table:
    columns = ["", "s/step", "steps/s", "training"]
    has_cost = prediction.cost.total is not None
    table = _table(*columns, *(["cost"] if has_cost else []), "limited by", "")
    table.columns[-2].justify = "left"
    for row in (_planned(prediction), *prediction.what_if):
        money = [] if not has_cost else ["" if row.cost is None else format_money(row.cost, prediction.cost.currency)]
        per_second = f"{1 / row.step_seconds:.3g}" if row.step_seconds else ""
        cells = [row.name, f"{row.step_seconds:.3g}", per_second, format_seconds(row.run_seconds), *money]
        table.add_row(*cells, row.limit, row.note, style="bold" if row.name == PLANNED else None)
    return table


def _planned(prediction: Prediction) -> WhatIf:
    """The plan itself, counted as the other rows are."""
    step, cost = prediction.step, prediction.cost
    hours = prediction.train_seconds / 3600
    machines = None if prediction.price_per_hour is None else prediction.price_per_hour * hours
    known = [part for part in (machines, cost.traffic) if part is not None]
    total = sum(known) if known else None
    return WhatIf(PLANNED, step.total_seconds, prediction.train_seconds, total, limit_of(step), prediction.method)


def _checkpoint_table(prediction: Prediction, setting: Setting) -> Table:
    table = _table("file", "bytes", "")
    for name, num_bytes in prediction.checkpoint_files.items():
        words = format_bytes_both(num_bytes) if num_bytes >= 1e6 else format_bytes(num_bytes)
        table.add_row(name, f"{num_bytes:,}", words)
    total = sum(prediction.checkpoint_files.values())
    table.add_row("all", f"{total:,}", format_bytes_both(total), style="bold")
    classic = sum(classic_bytes(setting.compute.middle.num_parameters).values())
    words = f"{format_bytes_both(classic)}: fp16 weights, fp32 copies, two averages, 14 bytes a parameter"
    table.add_row("(classic layout)", f"{classic:,}", words, style="dim")
    return table


def _closing_lines(prediction: Prediction) -> list[str]:
    disk = f"disk at the end: {format_bytes(prediction.disk_bytes)} on each host, checkpoints kept and records"
    return [f"break-even: {prediction.break_even}", disk]


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
