"""What two runs learned, in one sentence: dev loss at equal tokens and equal time, the best scores, and chance."""

from collections.abc import Sequence

from dragoman.diagnose.comparison.paired import Paired
from dragoman.diagnose.comparison.quality import Quality, Reading
from dragoman.diagnose.comparison.settings import SettingRow, differences_text
from dragoman.diagnose.wording import sentence
from dragoman.units import format_count, format_seconds


def explain_quality(quality: Quality, number: int, paired: Sequence[Paired], settings: Sequence[SettingRow]) -> str:
    """One sentence on what was learned: at equal tokens and equal time, and by the best scores."""
    name, reference = quality.sides[number].name, quality.sides[0].name
    footing = quality.footings[number]
    if not len(footing.curve) or not len(quality.footings[0].curve):
        return f"Quality cannot be compared: {footing.loss_reason or quality.footings[0].loss_reason}."
    parts: list[str] = []
    if footing.loss_reason:
        parts.append(f"dev losses of {name} and {reference} are not comparable: {footing.loss_reason}")
    else:
        parts += _loss_parts(quality, number, paired)
    bleu = next((item for item in paired if item.name == "BLEU"), None)
    if bleu is not None:
        parts.append(f"best BLEU {bleu.other:.2f} against {bleu.reference:.2f}, {_chance_text(bleu)}")
    learning = [row for row in settings if row.is_about_learning]
    if learning and any(item.is_beyond_chance for item in paired):
        parts.append(f"{differences_text(learning)}")
    return f"{sentence('; '.join(parts))}."


def _loss_parts(quality: Quality, number: int, paired: Sequence[Paired]) -> list[str]:
    at_tokens = (quality.loss_at_tokens(0), quality.loss_at_tokens(number))
    at_seconds = (quality.loss_at_seconds(0), quality.loss_at_seconds(number))
    parts: list[str] = []
    name, reference = quality.sides[number].name, quality.sides[0].name
    if at_tokens[0] is not None and at_tokens[1] is not None and quality.common_tokens:
        where = f"after {format_count(quality.common_tokens)} target tokens"
        same = next((item for item in paired if item.name == "dev loss" and item.at == "equal tokens"), None)
        if at_tokens[0].value == at_tokens[1].value:
            parts.append(f"{where} {name} and {reference} have the very same dev loss, {at_tokens[0].value:.3f}")
        else:
            chance = f", {_chance_text(same)}" if same else ""
            parts.append(f"{where} {name}'s dev loss is {_against(at_tokens[0], at_tokens[1])}{chance}")
    else:
        parts.append(f"no amount of target tokens lies between evaluations of both {name} and {reference}")
    if at_seconds[0] is not None and at_seconds[1] is not None and quality.common_seconds:
        where = f"after {format_seconds(quality.common_seconds)} of training"
        parts.append(f"{where} {_against(at_seconds[0], at_seconds[1])}")
    return parts


def _against(ours: Reading, theirs: Reading) -> str:
    mark = "" if ours.is_exact and theirs.is_exact else ", read between evaluations"
    return f"{theirs.value:.3f} against {ours.value:.3f}{mark}"


def _chance_text(item: Paired) -> str:
    if item.delta == 0 and item.low == item.high == 0:
        return "no difference"
    verdict = "beyond chance" if item.is_beyond_chance else "may be chance"
    digits = 3 if item.name == "dev loss" else 2
    return f"{item.delta:+.{digits}f} [{item.low:+.{digits}f}, {item.high:+.{digits}f}], {verdict}"
