"""Sentence patterns about weather, events, seasons and when they are.

Each is a function (draw, main verb) -> (English, German); the list at the end names them and the
specification that their main verbs must fit.
"""

from typing import Final

from dragoman.data.phrasebook import clause as clauses
from dragoman.data.phrasebook import english, german
from dragoman.data.phrasebook import selection as select
from dragoman.data.phrasebook.clause import Clause, Part
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.frames import build, parse_spec
from dragoman.data.phrasebook.lexicon_verbs import Verb, verbs
from dragoman.data.phrasebook.lexicon_words import NUMERALS
from dragoman.data.phrasebook.phrase import HE, noun_phrase
from dragoman.data.phrasebook.predication import Pair, Special, statement


def weather_if(draw: Draw, verb: Verb) -> Pair:
    clause = build(draw, parse_spec("object future free obj=the"), verb)
    rain = draw.word(verbs("weather"))
    en, de = english.third_person(rain), german.present(rain, HE.agree)
    return (
        f"if it {en} tomorrow, {clauses.english_statement(clause)}.",
        f"wenn es morgen {de}, {clauses.german_verb_first(clause)}.",
    )


def weather_because(draw: Draw, verb: Verb) -> Pair:
    clause = build(draw, parse_spec("goal past not subj=third"), verb)
    rain = draw.word(verbs("weather"))
    return (
        f"{clauses.english_statement(clause)} because it was {english.gerund(rain)}.",
        f"{clauses.german_main(clause)}, weil es {german.preterite(rain, HE.agree)}.",
    )


def event_time(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("event"))
    phrase = noun_phrase(draw.one_of(("the", "this", "our")), noun, select.adjective_for(draw, noun, 0.6))
    when = draw.one_of((select.date, select.clock_time, select.weekday))(draw)
    return statement(Clause(phrase, verb, draw.one_of(("present", "past", "future")), (when,)))


def event_when(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("event"))
    phrase = noun_phrase(draw.one_of(("the", "this", "our", "your")), noun, select.adjective_for(draw, noun, 0.5))
    clause = Clause(phrase, verb, draw.one_of(("present", "future")))
    return f"when {clauses.english_question(clause)}?", f"wann {clauses.german_verb_first(clause)}?"


def event_said(draw: Draw, verb: Verb) -> Pair:
    said = build(draw, parse_spec("that past subj=third"), verb)
    noun = draw.word(select.nouns_of("event"))
    phrase = noun_phrase(draw.one_of(("the", "this", "our")), noun, select.adjective_for(draw, noun, 0.4))
    when = draw.one_of((select.clock_time, select.weekday))(draw)
    event = Clause(phrase, draw.word(verbs("event")), "past", (when,))
    return (
        f"{clauses.english_statement(said)} that {clauses.english_statement(event)}.",
        f"{clauses.german_main(said)}, dass {clauses.german_verb_last(event)}.",
    )


def event_past(draw: Draw, verb: Verb) -> Pair:
    """Two events, one clock: no conjunction of the tables has things for subjects."""
    draw.use(verb)
    first, second = draw.word(select.nouns_of("event")), draw.word(select.nouns_of("event"))
    one = Clause(noun_phrase("the", first, select.adjective_for(draw, first, 0.4)), verb, "past")
    other = Clause(noun_phrase("the", second), draw.word(verbs("event")), "pluperfect")
    return (
        f"{clauses.english_statement(one)} after {clauses.english_statement(other)}.",
        f"{clauses.german_main(one)}, nachdem {clauses.german_verb_last(other)}.",
    )


def lasts(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("show"))
    phrase = noun_phrase(draw.one_of(("the", "this")), noun, select.adjective_for(draw, noun, 0.7))
    number = draw.one_of(NUMERALS)
    part = Part("predicate", f"{number.english} hours", f"{number.german} Stunden")
    return statement(Clause(phrase, verb, draw.one_of(("past", "future")), (part,)))


def _around_event(draw: Draw, verb: Verb, spec: str, words: Pair, case: int) -> Pair:
    noun = draw.word(select.nouns_of("event"))
    phrase = noun_phrase("the", noun, select.adjective_for(draw, noun, 0.3))
    clause = build(draw, parse_spec(spec), verb)
    return (
        f"{words[0]} {phrase.english}, {clauses.english_statement(clause)}.",
        f"{words[1]} {phrase.german[case]} {clauses.german_verb_first(clause)}.",
    )


def during(draw: Draw, verb: Verb) -> Pair:
    return _around_event(draw, verb, "alone past subj=third", ("during", "während"), german.GENITIVE)


def after_event(draw: Draw, verb: Verb) -> Pair:
    return _around_event(draw, verb, "goal past subj=third", ("after", "nach"), german.DATIVE)


def before_event(draw: Draw, verb: Verb) -> Pair:
    return _around_event(draw, verb, "object hadto free", ("before", "vor"), german.DATIVE)


def growing(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("plant"))
    phrase = noun_phrase("the", noun, select.adjective_for(draw, noun, 0.6), plural=draw.chance(0.6))
    where = select.place(draw, "=garden,=park,=forest,=village,=farm,=island")
    return statement(Clause(phrase, verb, draw.one_of(("present", "past")), (where,)))


def growing_season(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("plant"))
    phrase = noun_phrase("the", noun, select.adjective_for(draw, noun, 0.6), plural=draw.chance(0.7))
    where = select.place(draw, "=garden,=park,=forest,=village,=farm,=island")
    when = Part("time", "in summer", "im Sommer")
    return statement(Clause(phrase, verb, draw.one_of(("present", "past")), (where, when), front="time"))


EVENTS: Final[tuple[Special, ...]] = (
    ("weather-if", "object future free", weather_if),
    ("weather-because", "goal past", weather_because),
    ("event-time", "event present", event_time),
    ("event-when", "event present", event_when),
    ("event-said", "that past", event_said),
    ("event-after", "event present", event_past),
    ("lasts", "last present", lasts),
    ("during", "alone past", during),
    ("after-event", "goal past", after_event),
    ("before-event", "object hadto", before_event),
    ("growing", "grow present", growing),
    ("growing-season", "grow present", growing_season),
)
