"""All sentence patterns: reads the tables, renders templates, and adds the patterns written as functions."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from dragoman.data.phrasebook import clause as clauses
from dragoman.data.phrasebook.clause import Clause
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.frames import build, parse_spec, verbs_for
from dragoman.data.phrasebook.lexicon_verbs import Verb
from dragoman.data.phrasebook.patterns_events import EVENTS
from dragoman.data.phrasebook.patterns_joined import JOINED
from dragoman.data.phrasebook.patterns_quality import QUALITY
from dragoman.data.phrasebook.patterns_relative import RELATIVE
from dragoman.data.phrasebook.patterns_simple import SIMPLE
from dragoman.data.phrasebook.patterns_things import THINGS

Make = Callable[[Draw, Verb], tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Pattern:
    name: str
    verbs: tuple[Verb, ...]  # the main verbs it goes with
    make: Make  # English and German text without capital and tidying


# The mark after the clause's letter says in which shape it appears.
_ENGLISH: Final[dict[str, Callable[[Clause], str]]] = {
    "": clauses.english_statement,
    "?": clauses.english_question,
    "!": clauses.english_infinitive,
    "~": clauses.english_gerund,
}
_GERMAN: Final[dict[str, Callable[[Clause], str]]] = {
    "": clauses.german_main,
    "?": clauses.german_verb_first,
    "<": clauses.german_verb_last,
    "!": clauses.german_zu_infinitive,
    ".": clauses.german_imperative,
    "_": clauses.german_infinitive,
}
_HOLE: Final = re.compile(r"\{([AB])(\W?|_)\}")


def render(template: str, shapes: dict[str, Callable[[Clause], str]], parts: dict[str, Clause]) -> str:
    """{A} statement, {A?} verb first, {A<} verb last, {A!} infinitive, {A~} gerund, {A.} imperative."""
    return _HOLE.sub(lambda hole: shapes[hole[2]](parts[hole[1]]), template)


def _from_row(row: str) -> Pattern:
    name, english, german, first, *second = (field.strip() for field in row.split("|"))
    spec_a = parse_spec(first)
    spec_b = parse_spec(second[0]) if second else None

    def make(draw: Draw, verb: Verb) -> tuple[str, str]:
        if spec_b is None:
            found = {"A": build(draw, spec_a, verb)}
        elif spec_b.get("lead"):
            b = build(draw, spec_b)
            found = {"B": b, "A": build(draw, spec_a, verb, earlier=b)}
        else:
            a = build(draw, spec_a, verb)
            found = {"A": a, "B": build(draw, spec_b, earlier=a)}
        return render(english, _ENGLISH, found), render(german, _GERMAN, found)

    return Pattern(name, verbs_for(spec_a), make)


@cache
def all_patterns() -> tuple[Pattern, ...]:
    rows = (SIMPLE + re.sub(r"\n +", " ", JOINED)).strip().splitlines()
    table = [_from_row(row) for row in rows if row.strip()]
    special = [
        Pattern(name, verbs_for(parse_spec(spec)), make) for name, spec, make in (*QUALITY, *THINGS, *EVENTS, *RELATIVE)
    ]
    return (*table, *special)
