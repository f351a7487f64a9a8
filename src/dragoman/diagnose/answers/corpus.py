"""Question 7: how big the training set was, in lines and bytes, on both sides and at every stage."""

from dragoman.diagnose.answers.training import epochs_of
from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import QUESTIONS, Answer, Number, not_recorded
from dragoman.diagnose.wording import size_text
from dragoman.run.records import SideSize
from dragoman.units import format_count

PREPARE = "Sizes of both sides: `dragoman prepare` writes them to the data folder's manifest."


def answer_corpus(facts: Facts) -> Answer:
    """7. Cleaned text is what counts as the training set; raw text and pieces stand beside it."""
    data = facts.run.manifest.data
    sides = (data.source, data.target)
    if data.num_pairs <= 0:
        return not_recorded(7, "The manifest does not say how many pairs the training set has.", PREPARE)
    clean = sum(side.clean_bytes for side in sides)
    named = [_side(side) for side in sides]
    told = [f"A pair is a source line and its translation; cleaned, {named[0]} and {named[1]}."]
    if all(side.raw_lines and side.raw_bytes for side in sides):
        raw = sum(side.raw_bytes for side in sides)
        is_same = raw == clean and sides[0].raw_lines == data.num_pairs
        before = f"Before cleaning it was {sides[0].raw_lines:,} pairs, {size_text(raw)} on both sides."
        told.append("Cleaning left out nothing." if is_same else before)
    if all(side.bpe_bytes for side in sides):
        pieces = sum(side.bpe_bytes for side in sides)
        told.append(
            f"Cut into pieces of the vocabulary and written as text it is {size_text(pieces)}: more bytes, "
            "same content."
        )
    passes = epochs_of(facts)
    if passes is not None:
        told.append(f"The run saw each pair {passes:.3g} times on average.")
    size = f", {size_text(clean)} on both sides" if clean else ""
    return Answer(
        number=7,
        question=QUESTIONS[6],
        verdict=f"{data.num_pairs:,} pairs of lines{size}.",
        sentences=" ".join(told),
        numbers=tuple(number for side in sides for number in _numbers(side)),
        chart="data",
        evidence=f"Counted by `dragoman prepare`; fingerprint of the data folder {data.fingerprint[:12] or 'unknown'}.",
        confidence="high" if clean else "medium",
        missing="" if clean else PREPARE,
    )


def _side(side: SideSize) -> str:
    language = side.language or "one side"
    return f"{language} is {size_text(side.clean_bytes)}" if side.clean_bytes else f"{language} is not recorded"


def _numbers(side: SideSize) -> list[Number]:
    stages = (
        ("raw", side.raw_lines, side.raw_bytes),
        ("cleaned", side.clean_lines, side.clean_bytes),
        ("as pieces", 0, side.bpe_bytes),
    )
    found: list[Number] = []
    for stage, lines, num_bytes in stages:
        if num_bytes:
            counted = f"{lines:,} lines, " if lines else ""
            tokens = f", {format_count(side.num_tokens)} tokens" if stage == "as pieces" and side.num_tokens else ""
            found.append(Number(f"{side.language} {stage}", f"{counted}{size_text(num_bytes)}{tokens}"))
    return found
