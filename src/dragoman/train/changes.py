"""What a run goes on with that was otherwise in the attempt before, in words. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.config import Recipe
from dragoman.plan.schedule import lr_at

SILENT = ("name", "about")
LENGTH = "train.max_steps"


@dataclass(frozen=True)
class Change:
    """One setting."""

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.key} was {self.before} and is {self.after} now"


def changed_settings(before: Mapping[str, Any], after: Recipe) -> list[Change]:
    """Of the recipe in a run's manifest and the one it goes on with; a setting that one of them lacks is none."""
    found: list[Change] = []
    for section, values in after.model_dump().items():
        known = before.get(section)
        if section in SILENT or not isinstance(known, Mapping):
            continue
        found += [
            Change(f"{section}.{key}", known[key], value)
            for key, value in values.items()
            if key in known and known[key] != value
        ]
    return found


def rate_note(changes: Sequence[Change], recipe: Recipe, step: int) -> str | None:
    """What another length does to the learning rate of the next step; None where it does nothing."""
    lengths = [change for change in changes if change.key == LENGTH]
    if not lengths:
        return None
    before, after = (
        lr_at(step + 1, recipe.optim, recipe.model.d_model, length) for length in (lengths[0].before, lengths[0].after)
    )
    if before == after:
        return None
    return (
        f"the learning rate follows the length: {after:.3g} at step {step + 1:,} instead of {before:.3g}, and "
        f"{recipe.optim.final_share:.0%} of its peak at step {lengths[0].after:,}"
    )
