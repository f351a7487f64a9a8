"""Draws the phrases of a clause: who does it, to what, where and when.

Knows which words make sense together (through the lexicon's tags), not how clauses are put in order.
"""

from functools import cache
from itertools import pairwise

from dragoman.data.phrasebook import german
from dragoman.data.phrasebook.clause import Part
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.lexicon_nouns import Noun, nouns
from dragoman.data.phrasebook.lexicon_words import (
    CITIES,
    DAYS,
    MEN,
    MONTHS,
    NUMERALS,
    WOMEN,
    Adjective,
    Adverb,
    adjectives,
    adverbs,
)
from dragoman.data.phrasebook.phrase import (
    HE,
    PRONOUNS,
    THEY,
    WE,
    YOU,
    Phrase,
    noun_phrase,
    person,
    possessive_of,
)

_OWNED = frozenset({"pet", "farm"})
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
# English and German preposition for being at a place, by the tag that every place carries.
_AT = {"in": ("in", "in"), "on": ("on", "auf"), "at-on": ("at", "auf"), "at": ("at", "an")}
_LOCATIONS = {
    "top": (("on", "auf"), ("under", "unter"), ("next to", "neben")),
    "stood": (("on", "auf"), ("next to", "neben")),
    "heavy": (("under", "unter"), ("next to", "neben"), ("behind", "hinter")),
    "inside": (("in", "in"), ("next to", "neben"), ("behind", "hinter")),
}

_HOURS = tuple(pairwise(NUMERALS))

nouns_of = cache(nouns)
adverbs_of = cache(adverbs)


adjectives_of = cache(adjectives)
STATE = frozenset({"state"})
# Adjectives that fit a noun's tags and yet not the noun.
_CLASHES = {
    "old": ("minor",),
    "young": ("minor",),
    "strict": ("minor",),
    "famous": ("minor",),
    "rich": ("minor", "=thief", "=king", "=queen"),
    "poor": ("=king", "=queen"),
    "small": ("=elephant", "=supermarket"),
    "big": ("=mouse", "=stamp", "=coin"),
}


@cache
def adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that make sense with a noun."""
    fitting = adjectives_of(noun.tags)
    return tuple(a for a in fitting if noun.tags.isdisjoint(_CLASHES.get(a.english, ())))


def adjective_for(draw: Draw, noun: Noun, probability: float) -> Adjective | None:
    return draw.word(adjectives_for(noun)) if draw.chance(probability) else None


def name(draw: Draw) -> Phrase:
    return person(draw.one_of(WOMEN), "f") if draw.chance(0.5) else person(draw.one_of(MEN), "m")


def subject(draw: Draw, kind: str, animals: bool) -> Phrase:
    """kind: any, third (never du), clear (one that a pronoun can take up), pronoun, noun..."""
    match kind:
        case "any":
            if draw.chance(0.3):
                return name(draw) if draw.chance(0.3) else draw.one_of(PRONOUNS)
            return subject(draw, "plural" if draw.chance(0.2) else "noun", animals)
        case "third":
            if draw.chance(0.1):
                noun = draw.word(nouns_of("person"))
                return noun_phrase("a", noun, adjective_for(draw, noun, 0.4))
            found = subject(draw, "any", animals)
            return found if found is not YOU else subject(draw, "noun", animals)
        case "clear":
            if draw.chance(0.4):
                return draw.one_of(PRONOUNS) if draw.chance(0.6) else name(draw)
            return agent(draw, "clear", plural=draw.chance(0.2))
        case "group":
            return draw.one_of((WE, THEY)) if draw.chance(0.3) else agent(draw, "person", plural=True)
        case "every":
            noun = draw.word(nouns_of("person"))
            return noun_phrase("every", noun, adjective_for(draw, noun, 0.4))
        case "pronoun":
            return draw.one_of(PRONOUNS)
        case "name":
            return name(draw)
        case "noun" | "plural":
            tags = "animal" if animals and draw.chance(0.3) else "person,kin"
            return agent(draw, tags, plural=kind == "plural")
        case "you":
            return YOU
        case "we":
            return WE
        case "they":
            return THEY
        case "he":
            return HE
        case _:
            raise AssertionError(f"unknown kind of subject {kind}")


def agent(draw: Draw, tags: str, plural: bool = False) -> Phrase:
    """A definite person or animal: the old man, my sister, these dogs."""
    noun = draw.word(nouns_of(tags))
    adjective = adjective_for(draw, noun, 0.25)
    plural = plural and "single" not in noun.tags
    if noun.kind == "kin":
        return noun_phrase(draw.one_of(POSSESSIVES), noun, adjective, plural)
    determiner = "the"
    if draw.chance(0.35):
        determiner = draw.one_of(("this", "my", "our")) if noun.tags & _OWNED else "this"
    return noun_phrase(determiner, noun, adjective, plural)


def thing(draw: Draw, tags: str, kind: str, owner: Phrase, adjective_share: float = 0.4) -> Phrase:
    """An object. kind: any, the, a, this, own, plural, number, no, which, pronoun."""
    if kind == "pronoun":
        return pronoun_object(draw, owner)
    noun = draw.word(nouns_of(tags))
    countable = bool(noun.plural) and "single" not in noun.tags
    plural = countable and (kind == "plural" or draw.chance(0.25))
    if kind == "any":
        kind = draw.one_of(("the", "the", "a", "a", "this", "own", "number"))
    if kind == "own" and noun.kind == "person":
        kind = "the"
    adjective = adjective_for(draw, noun, adjective_share)
    if kind == "number" and countable:
        return noun_phrase("", noun, adjective, plural=True, number=draw.one_of(NUMERALS))
    determiner = {"number": "the", "plural": "a"}.get(kind, kind)
    if kind == "own":
        determiner = possessive_of(owner) or "the"
    if noun.kind == "kin" and determiner in ("the", "a", "this"):
        determiner = draw.one_of(POSSESSIVES)
    return noun_phrase(determiner, noun, adjective, plural)


def pronoun_object(draw: Draw, owner: Phrase) -> Phrase:
    """A pronoun that cannot mean the subject itself."""
    taken = {0: (0, 3), 3: (0, 3), 1: (1,), 2: (), 5: (5,)}[owner.agree]
    pool = [pronoun for pronoun in PRONOUNS if pronoun.agree not in taken]
    if owner.pronoun:
        pool = [pronoun for pronoun in pool if pronoun.english != owner.english]
    return draw.one_of(pool)


def goal(draw: Draw, tags: str, owner: Phrase) -> Part:
    noun = draw.word(nouns_of(tags))
    into = "in" in noun.tags and "zu" not in noun.tags
    own = possessive_of(owner) if "home" in noun.tags and into and draw.chance(0.3) else ""
    phrase = noun_phrase(own or "the", noun, adjective_for(draw, noun, 0.25))
    form = phrase.german[german.ACCUSATIVE if into else german.DATIVE]
    return Part("goal", f"to {phrase.english}", german.contracted("in" if into else "zu", form))


def city_goal(draw: Draw) -> Part:
    city = draw.one_of(CITIES)
    return Part("goal", f"to {city}", f"nach {city}")


def place(draw: Draw, tags: str = "place") -> Part:
    noun = draw.word(nouns_of(tags))
    relation = next(tag for tag in _AT if tag in noun.tags)
    phrase = noun_phrase("the", noun, adjective_for(draw, noun, 0.25))
    there, dort = _AT[relation]
    return Part("place", f"{there} {phrase.english}", german.contracted(dort, phrase.german[german.DATIVE]))


def location(draw: Draw, case: int, tags: str) -> Part:
    """on the table, under the bed: with the accusative for where to, the dative for where."""
    by_thing = tags in ("heavy", "stood")  # what is put decides how: boxes go beside, vases stand on
    noun = draw.word(nouns_of("seat,=table,=desk,=shelf" if by_thing else tags))
    near = tags if by_thing else "top" if "top" in noun.tags else "inside"
    there, dort = draw.one_of(_LOCATIONS[near])
    phrase = noun_phrase("the", noun, adjective_for(draw, noun, 0.3))
    return Part("goal", f"{there} {phrase.english}", german.contracted(dort, phrase.german[case]))


def adverb(draw: Draw, kind: str, slot: str) -> Part:
    found: Adverb = draw.word(adverbs_of(kind))
    return Part(slot, found.english, found.german)


def weekday(draw: Draw) -> Part:
    day, tag = draw.one_of(DAYS)
    return Part("time", f"on {day}", f"am {tag}")


def date(draw: Draw) -> Part:
    month, monat = draw.one_of(MONTHS)
    day = 1 + int(draw.one_of(range(28)))
    ordinal = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd"}.get(day, "th")
    return Part("time", f"on the {day}{ordinal} of {month}", f"am {day}. {monat}")


def clock_time(draw: Draw) -> Part:
    """half past four is halb fünf: German counts towards the next hour."""
    hour, next_hour = draw.one_of(_HOURS)
    form = draw.one_of(("o'clock", "half", "quarter past", "quarter to"))
    match form:
        case "o'clock":
            return Part("time", f"at {hour.english} o'clock", f"um {hour.german} Uhr")
        case "half":
            return Part("time", f"at half past {hour.english}", f"um halb {next_hour.german}")
        case "quarter past":
            return Part("time", f"at a quarter past {hour.english}", f"um Viertel nach {hour.german}")
        case _:
            return Part("time", f"at a quarter to {hour.english}", f"um Viertel vor {hour.german}")
