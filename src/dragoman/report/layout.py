"""Which figure stands where: each once, beside the first answer that asks for it, the others among the curves."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dragoman.diagnose.finding import Answer


@dataclass(frozen=True)
class Place:
    """The figure of an answer: its own, or the one that an earlier answer shows already."""

    key: str | None = None
    shown_at: int | None = None  # the number of that answer


def place_figures(answers: Sequence[Answer], keys: Collection[str]) -> tuple[dict[int, Place], list[str]]:
    """(number of the answer -> its place, keys that no answer uses)."""
    owners: dict[str, int] = {}
    places: dict[int, Place] = {}
    for answer in answers:
        key = answer.chart
        if key is None or key not in keys:
            places[answer.number] = Place()
        elif key in owners:
            places[answer.number] = Place(key, owners[key])
        else:
            owners[key] = answer.number
            places[answer.number] = Place(key)
    return places, [key for key in keys if key not in owners]
