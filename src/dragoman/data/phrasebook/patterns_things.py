"""Sentence patterns about having, costing, liking and being somewhere.

Each is a function (draw, main verb) -> (English, German); the list at the end names them and the
specification that their main verbs must fit.
"""

from typing import Final

from dragoman.data.phrasebook import clause as clauses
from dragoman.data.phrasebook import english, german
from dragoman.data.phrasebook import selection as select
from dragoman.data.phrasebook.clause import Clause, Part
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.frames import build, dative_part, object_part, parse_spec
from dragoman.data.phrasebook.lexicon_verbs import Verb
from dragoman.data.phrasebook.lexicon_words import ADJECTIVES, NUMERALS
from dragoman.data.phrasebook.phrase import HE, THEY, noun_phrase, pronoun_for
from dragoman.data.phrasebook.predication import Pair, Special, copula, nominative, statement

_MEASURES: Final = {"euro": range(2, 99), "kilo": range(2, 40)}


def where_is(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("small,clothes,doc"))
    phrase = noun_phrase(draw.one_of(("the", *select.POSSESSIVES)), noun, select.adjective_for(draw, noun, 0.5))
    spot = select.location(draw, german.DATIVE, "top,inside")
    (_, _), (again, wieder) = copula(phrase), copula(pronoun_for(phrase))
    return (
        f"where is {phrase.english}? {again.capitalize()} {spot.english}.",
        f"wo ist {nominative(phrase)}? {wieder.capitalize()} {spot.german}.",
    )


def there_is(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("building,fun,furniture,plant"))
    number = draw.one_of(NUMERALS) if draw.chance(0.4) else None
    determiner = "" if number else "a"
    phrase = noun_phrase(determiner, noun, select.adjective_for(draw, noun, 0.6), number is not None, number)
    where = select.place(draw, "home" if noun.kind == "furniture" else "=village,=town,=island,=park")
    there = "there are" if number else "there is"
    return (
        f"{there} {phrase.english} {where.english}.",
        f"{where.german} gibt es {phrase.german[german.ACCUSATIVE]}.",
    )


def _have(draw: Draw, verb: Verb, tense: str, determiner: str) -> Clause:
    draw.use(verb)
    subject = select.subject(draw, "third", animals=False)
    phrase = select.thing(draw, "parked,thing,pet,clothes,furniture", determiner, subject)
    negation = "kein" if determiner == "no" else ""
    return Clause(subject, verb, tense, (object_part(phrase),), negation)


def have_something(draw: Draw, verb: Verb) -> Pair:
    return statement(_have(draw, verb, draw.one_of(("present", "past")), draw.one_of(("a", "number"))))


def have_none(draw: Draw, verb: Verb) -> Pair:
    return statement(_have(draw, verb, "present", "no"))


def cost(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("clothes,furniture,thing"))
    # In the plural "cost" would be present and past at once.
    phrase = noun_phrase(draw.one_of(("the", "this")), noun, select.adjective_for(draw, noun, 0.5))
    amount = draw.one_of(_MEASURES["euro"])
    part = Part("predicate", f"{amount} euros", f"{amount} Euro")
    return statement(Clause(phrase, verb, draw.one_of(("present", "past")), (part,)))


def how_much(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    phrase = select.thing(draw, "clothes,furniture,vehicle,thing,food", draw.one_of(("the", "this")), THEY)
    clause = Clause(phrase, verb, "present")
    return f"how much {clauses.english_question(clause)}?", f"wie viel {clauses.german_verb_first(clause)}?"


def weigh(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    phrase = select.thing(draw, "heavy,furniture", draw.one_of(("the", "this")), THEY)
    amount = draw.one_of(_MEASURES["kilo"])
    part = Part("predicate", f"{amount} kilos", f"{amount} Kilo")
    return statement(Clause(phrase, verb, "present", (part,)))


def belongs(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    tags = "thing,vehicle,clothes,pet,furniture,home"
    phrase = select.thing(draw, tags, draw.one_of(("the", "this")), THEY, adjective_share=0.6)
    owner = select.thing(draw, "person,kin", "the", phrase, adjective_share=0.2)
    return statement(Clause(phrase, verb, draw.one_of(("present", "past")), (dative_part(owner),)))


def likes(draw: Draw, verb: Verb) -> Pair:
    """What English likes is the subject in German: das Bild gefällt mir."""
    draw.use(verb)
    who = select.subject(draw, "any", animals=False)
    what = select.thing(draw, "art,clothes,liked,furniture,sight,told", draw.one_of(("the", "this")), THEY)
    negation = "nicht" if draw.chance(0.4) else ""
    said = Clause(who, verb, "present", (object_part(what),), negation)
    dative = Part("dative", "", who.german[german.DATIVE])
    return (
        f"{clauses.english_statement(said)}.",
        f"{clauses.german_main(Clause(what, verb, 'present', (dative,), negation))}.",
    )


def profession(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    who = select.agent(draw, "=son,=brother,=boy,=friend,=uncle,=pupil,=student")
    job = draw.word(select.nouns_of("job"))
    want = Clause(
        who,
        verb,
        draw.one_of(("want", "wanted")),
        (Part("predicate", english.indefinite(job.english), job.german),),
    )
    return f"{clauses.english_statement(want)}.", f"{clauses.german_main(want)}."


def it_is_to(draw: Draw, verb: Verb) -> Pair:
    names = ("important", "difficult", "dangerous", "boring", "simple", "practical", "expensive")
    adjective = draw.word([a for a in ADJECTIVES if a.english in names])
    clause = build(draw, parse_spec("object present subj=he free obj=a"), verb)
    return (
        f"it is {adjective.english} to {clauses.english_infinitive(clause)}.",
        f"es ist {adjective.german}, {clauses.german_zu_infinitive(clause)}.",
    )


def no_time_to(draw: Draw, verb: Verb) -> Pair:
    clause = build(draw, parse_spec("object present free obj=the"), verb)
    who = clause.subject
    have = "has" if who.agree == HE.agree else "have"
    return (
        f"{who.english} {have} no time to {clauses.english_infinitive(clause)}.",
        f"{nominative(who)} {german.auxiliary('haben', who.agree)} keine Zeit, {clauses.german_zu_infinitive(clause)}.",
    )


THINGS: Final[tuple[Special, ...]] = (
    ("where-is", "copula present", where_is),
    ("there-is", "copula present", there_is),
    ("have", "have present", have_something),
    ("have-none", "have present", have_none),
    ("cost", "cost present", cost),
    ("how-much", "cost present", how_much),
    ("weigh", "weigh present", weigh),
    ("belongs", "belong present", belongs),
    ("likes", "please present", likes),
    ("profession", "become present", profession),
    ("it-is-to", "object present free", it_is_to),
    ("no-time-to", "object present free", no_time_to),
)
