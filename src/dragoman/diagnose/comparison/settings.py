"""Which settings of several runs differ: recipe, machines, exchange, link, data, versions. Equal ones are left out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from dragoman.diagnose.comparison.side import Side
from dragoman.diagnose.wording import bits_text, joined
from dragoman.run.records import Host, Manifest
from dragoman.units import format_count

ABSENT = "-"
NOBODY = "none, one rank"
MICROBATCHES = "batch.num_microbatches"
LIKE = 1.05  # two measurements of one link differ by less
# A setting of the exchange says something only for the method that reads it.
METHOD_KEYS = {
    "diloco": ("delay_steps", "inner_rate", "outer_rate", "outer_momentum", "replica"),
    "powersgd": ("matrix_rank", "dense_steps"),
}
# Neither the speed of a step nor what is learned in it depends on these.
NEUTRAL = ("name", "about", "evaluate.", "checkpoint.", "decode.", "train.log_every", "train.max_minutes", "git")
LEARNING = (
    "model.", "optim.", "batch.", "vocab.", "data.", "train.seed", "train.label_smoothing", "train.max_steps",
    "train.patience", "training data", "exchange", "sync.", "precision",
)  # fmt: skip
WORDS = {
    "optim.learning_rate": "the learning rate",
    "optim.schedule": "the schedule",
    "optim.warmup_steps": "the warm-up",
    "batch.target_tokens": "the batch size",
    "train.max_steps": "the number of steps",
    "train.seed": "the seed",
    "train.label_smoothing": "label smoothing",
    "model.dropout": "dropout",
    "exchange": "the exchange",
    "ranks": "the number of ranks",
    "link": "the link",
    "training data": "the training data",
}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting that differs, as text; the reference's value first."""

    key: str
    values: tuple[str, ...]

    @property
    def is_neutral(self) -> bool:
        return self.key.startswith(NEUTRAL)

    @property
    def is_about_learning(self) -> bool:
        # The exact sum changes nothing, however many ranks or microbatches it is of.
        is_exact = self.key == "exchange" and all(value.startswith(("dense", NOBODY)) for value in self.values)
        return self.key.startswith(LEARNING) and not is_exact and self.key != MICROBATCHES

    @property
    def words(self) -> str:
        return WORDS.get(self.key, self.key)


def differing_settings(sides: Sequence[Side]) -> list[SettingRow]:
    """What the machines are first, then the recipe in its own order."""
    manifests = [side.facts.run.manifest for side in sides]
    described: dict[str, Callable[[Manifest], str]] = {
        "hosts": _hosts_text,
        "ranks": lambda manifest: str(manifest.world_size),
        "machine": _machine_text,
        "device": lambda manifest: manifest.device,
        "precision": lambda manifest: manifest.precision,
        "parameters": lambda manifest: format_count(manifest.num_parameters),
        "training data": lambda manifest: f"{manifest.data.num_pairs:,} pairs ({manifest.data.fingerprint[:8]})",
    }
    rows = [SettingRow(key, tuple(text(entry) for entry in manifests)) for key, text in described.items()]
    rows.append(SettingRow("exchange", tuple(side.method or NOBODY for side in sides)))
    rows.append(_link_row(sides))
    recipes = [_flat_recipe(entry) for entry in manifests]
    keys = dict.fromkeys(key for recipe in recipes for key in recipe)
    rows += [SettingRow(key, tuple(recipe.get(key, ABSENT) for recipe in recipes)) for key in keys]
    for name in ("dragoman", "torch"):
        rows.append(SettingRow(f"{name} version", tuple(entry.versions.get(name, ABSENT) for entry in manifests)))
    return [row for row in rows if len(set(row.values)) > 1]


def settings_between(rows: Sequence[SettingRow], number: int) -> list[SettingRow]:
    """Rows in which run `number` differs from the reference, with those two values only."""
    return [
        SettingRow(row.key, (row.values[0], row.values[number])) for row in rows if row.values[0] != row.values[number]
    ]


def differences_text(rows: Sequence[SettingRow], most: int = 3) -> str:
    """'the learning rate differs (0.003 against 0.005)', the later run's value first."""
    shown = [f"{row.words} ({row.values[1]} against {row.values[0]})" for row in rows[:most]]
    rest = len(rows) - len(shown)
    shown += [f"{rest} more setting{'s' if rest > 1 else ''}"] if rest else []
    if len(shown) == 1:
        return f"{rows[0].words} differs ({rows[0].values[1]} against {rows[0].values[0]})"
    return f"{joined(shown)} differ"


def _link_row(sides: Sequence[Side]) -> SettingRow:
    links = [side.facts.link for side in sides]
    capacities = [link.capacity if link else None for link in links]
    known = [capacity for capacity in capacities if capacity]
    if len(known) == len(sides) and max(known) <= LIKE * min(known):
        return SettingRow("link", ("",) * len(sides))
    texts = [
        "one host" if link is None else bits_text(8 * link.capacity) if link.capacity else "not measured"
        for link in links
    ]
    return SettingRow("link", tuple(texts))


def _hosts_text(manifest: Manifest) -> str:
    names = [host.name for host in manifest.hosts]
    return f"{len(names)} ({', '.join(names)})" if names else ABSENT


def _machine_text(manifest: Manifest) -> str:
    return "; ".join(dict.fromkeys(_host_text(host) for host in manifest.hosts)) or ABSENT


def _host_text(host: Host) -> str:
    if host.gpus:
        return f"{len(host.gpus)} x {host.gpus[0]}"
    return f"{host.cpu}, {host.num_cores} cores"


def _flat_recipe(manifest: Manifest) -> dict[str, str]:
    flat: dict[str, str] = {}
    for section, part in cast("dict[str, object]", manifest.recipe).items():
        if section == "sync":
            continue  # what was in force counts, and not that it was `auto`
        if isinstance(part, dict):
            values = cast("dict[str, object]", part)
            flat |= {f"{section}.{name}": _text(value) for name, value in values.items()}
        else:
            flat[section] = _text(part)
    if manifest.num_microbatches:
        flat[MICROBATCHES] = str(manifest.num_microbatches)
    return {**flat, **_exchange_settings(manifest)}


def _exchange_settings(manifest: Manifest) -> dict[str, str]:
    settings = manifest.exchange.settings if manifest.exchange and manifest.world_size > 1 else {}
    names = METHOD_KEYS.get(str(settings.get("method")), ())
    return {f"sync.{name}": _text(settings[name]) for name in names if name in settings}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in cast("Sequence[object]", value)) or "none"
    return json.dumps(value)
