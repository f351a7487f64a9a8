"""What the patterns written as functions share: the copula, definite phrases, finished statements."""

from collections.abc import Callable

from dragoman.data.phrasebook import clause as clauses
from dragoman.data.phrasebook import english, german
from dragoman.data.phrasebook import selection as select
from dragoman.data.phrasebook.clause import Clause, Part
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.lexicon_nouns import Noun
from dragoman.data.phrasebook.lexicon_verbs import Verb
from dragoman.data.phrasebook.lexicon_words import Adjective
from dragoman.data.phrasebook.phrase import Phrase, noun_phrase

Pair = tuple[str, str]  # English, German
Special = tuple[str, str, Callable[[Draw, Verb], Pair]]  # name, specification of its main verbs, function


def comparable(noun: Noun) -> tuple[Adjective, ...]:
    return tuple(a for a in select.adjectives_for(noun) if a.english_comparative != "-")


def definite(draw: Draw, noun: Noun, plural: bool = False) -> Phrase:
    determiner = draw.one_of(select.POSSESSIVES) if noun.kind == "kin" else draw.one_of(("the", "the", "this"))
    return noun_phrase(determiner, noun, plural=plural)


def nominative(phrase: Phrase) -> str:
    return phrase.german[german.NOMINATIVE]


def copula(subject: Phrase, past: bool = False) -> tuple[str, str]:
    return (
        f"{subject.english} {english.be(subject.agree, past)}",
        f"{nominative(subject)} {german.auxiliary('sein', subject.agree, past)}",
    )


def _with(clause: Clause, *parts: Part) -> Clause:
    return Clause(clause.subject, clause.verb, clause.tense, (*clause.parts, *parts), clause.negation, clause.front)


def statement(clause: Clause, *parts: Part) -> Pair:
    whole = _with(clause, *parts)
    return f"{clauses.english_statement(whole)}.", f"{clauses.german_main(whole)}."
