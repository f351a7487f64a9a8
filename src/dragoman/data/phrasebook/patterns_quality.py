"""Sentence patterns about what things are like: comparison, degree, age.

Each is a function (draw, main verb) -> (English, German); the list at the end names them and the
specification that their main verbs must fit.
"""

from typing import Final

from dragoman.data.phrasebook import english, german
from dragoman.data.phrasebook import selection as select
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.frames import build, frame_tags, object_part, parse_spec
from dragoman.data.phrasebook.lexicon_nouns import Noun
from dragoman.data.phrasebook.lexicon_verbs import Verb
from dragoman.data.phrasebook.lexicon_words import NUMERALS, Adjective, Numeral
from dragoman.data.phrasebook.phrase import Phrase, noun_phrase, owned, pronoun_for
from dragoman.data.phrasebook.predication import (
    Pair,
    Special,
    comparable,
    copula,
    definite,
    nominative,
    statement,
)

_COMPARED: Final = (
    "person",
    "kin",
    "animal",
    "furniture",
    "vehicle",
    "clothes",
    "doc",
    "show",
    "device",
    "building",
)
_EXCESSIVE_LIST: Final = (
    "big small expensive heavy short long hot cold sweet old dark slow loud dirty dangerous cheap warm"
)
_EXCESSIVE: Final = frozenset(_EXCESSIVE_LIST.split())
_MEASURED_LIST: Final = "big old heavy expensive fast dangerous long high healthy warm loud strong"
_MEASURED: Final = frozenset(_MEASURED_LIST.split())

_OPPOSITE_PAIRS: Final = (
    "clean dirty|cheap expensive|big small|old new|beautiful ugly|heavy light|short long|fast slow|dark bright"
    "|loud quiet|safe dangerous|beautiful dirty|empty quiet"
)
_OPPOSITES: Final = [set(pair.split()) for pair in _OPPOSITE_PAIRS.split("|")]


def _two(draw: Draw) -> tuple[Noun, Noun, Adjective]:
    """Two nouns of one kind and an adjective that can compare them."""
    kind = draw.one_of(_COMPARED)
    pool = select.nouns_of(kind)
    first, second = draw.word(pool), draw.word(pool)
    return first, second, draw.word([a for a in comparable(first) if a in comparable(second)])


def comparative(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    first, second, adjective = _two(draw)
    one, other = definite(draw, first, draw.chance(0.2)), definite(draw, second)
    en, de = copula(one, draw.chance(0.3))
    return (
        f"{en} {english.comparative(adjective)} than {other.english}.",
        f"{de} {adjective.german_comparative} als {nominative(other)}.",
    )


def much_more(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    first, second, adjective = _two(draw)
    (en, de), other = copula(definite(draw, first)), definite(draw, second)
    return (
        f"{en} much {english.comparative(adjective)} than {other.english}.",
        f"{de} viel {adjective.german_comparative} als {nominative(other)}.",
    )


def as_as(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    first, second, adjective = _two(draw)
    (en, de), other = copula(definite(draw, first)), definite(draw, second)
    return (
        f"{en} not as {adjective.english} as {other.english}.",
        f"{de} nicht so {adjective.german} wie {nominative(other)}.",
    )


def _superlative_phrase(noun: Noun, adjective: Adjective) -> Phrase:
    return noun_phrase("the", noun, _derived(english.superlative(adjective), german.superlative_stem(adjective)))


def _derived(en: str, de: str) -> Adjective:
    """A comparative or superlative stem, to be inflected like any adjective."""
    return Adjective(en, de, frozenset(), "", "-")


def superlative(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("building,fun,person,plant,animal"))
    phrase = _superlative_phrase(noun, draw.word(comparable(noun)))
    where = select.place(draw, "=village,=town,=island,=farm")
    return f"this is {phrase.english} {where.english}.", f"das ist {nominative(phrase)} {where.german}."


def superlative_object(draw: Draw, verb: Verb) -> Pair:
    noun = draw.word(select.nouns_of(frame_tags(verb, "object")))
    phrase = _superlative_phrase(noun, draw.word(comparable(noun)))
    spec = parse_spec("object want obj=none")
    return statement(build(draw, spec, verb), object_part(phrase))


def comparative_object(draw: Draw, verb: Verb) -> Pair:
    noun = draw.word(select.nouns_of(frame_tags(verb, "object")))
    adjective = draw.word(comparable(noun))
    better = _derived(english.comparative(adjective), adjective.german_comparative)
    spec = parse_spec("object perfect obj=none")
    return statement(build(draw, spec, verb), object_part(noun_phrase("a", noun, better)))


def _quality(draw: Draw, tags: str, wanted: frozenset[str] | None = None) -> tuple[Phrase, Adjective]:
    """A definite phrase and an adjective for it, of the wanted ones, or else one that has degrees."""
    noun = draw.word(select.nouns_of(tags))
    pool = [a for a in comparable(noun) if wanted is None or a.english in wanted]
    plural = bool(noun.plural) and draw.chance(0.3)
    return noun_phrase(draw.one_of(("the", "the", "this")), noun, None, plural), draw.word(pool)


def very(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    phrase, adjective = _quality(draw, "thing,furniture,clothes,place,doc,idea,show,vehicle,plant")
    en, de = copula(phrase, draw.chance(0.4))
    return f"{en} very {adjective.english}.", f"{de} sehr {adjective.german}."


def too(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    phrase, adjective = _quality(draw, "thing,furniture,clothes,drink,vehicle", _EXCESSIVE)
    en, de = copula(phrase, draw.chance(0.4))
    return f"{en} too {adjective.english}.", f"{de} zu {adjective.german}."


def but_it(draw: Draw, verb: Verb) -> Pair:
    """The pronoun has to follow the German gender: der Mantel ... er."""
    draw.use(verb)
    noun = draw.word(select.nouns_of("thing,furniture,clothes,vehicle,building,room"))
    phrase = noun_phrase("the", noun, plural=draw.chance(0.3))
    adjective = draw.word(comparable(noun))
    other = draw.word([a for a in comparable(noun) if {a.english, adjective.english} not in _OPPOSITES])
    again = pronoun_for(phrase)
    (en, de), (then, dann) = copula(phrase), copula(again)
    return (
        f"{en} {adjective.english}, but {then} not {other.english}.",
        f"{de} {adjective.german}, aber {dann} nicht {other.german}.",
    )


def age(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    phrase = select.agent(draw, "minor,animal,=son,=daughter,=brother,=sister")
    number: Numeral = draw.one_of(NUMERALS)
    en, de = copula(phrase)
    return f"{en} {number.english} years old.", f"{de} {number.german} Jahre alt."


def how_adjective(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    phrase, adjective = _quality(draw, "thing,furniture,vehicle,animal,peak", _MEASURED)
    return (
        f"how {adjective.english} {english.be(phrase.agree)} {phrase.english}?",
        f"wie {adjective.german} {german.auxiliary('sein', phrase.agree)} {nominative(phrase)}?",
    )


def genitive_subject(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("thing,vehicle,clothes,furniture,home,pet"))
    owner = select.agent(draw, "kin,clear", plural=draw.chance(0.2))
    phrase = owned(noun_phrase("the", noun, plural=draw.chance(0.2)), owner)
    adjective = draw.word(comparable(noun))
    en, de = copula(phrase, draw.chance(0.3))
    return f"{en} {adjective.english}.", f"{de} {adjective.german}."


QUALITY: Final[tuple[Special, ...]] = (
    ("comparative", "copula present", comparative),
    ("much-more", "copula present", much_more),
    ("not-as-as", "copula present", as_as),
    ("superlative", "copula present", superlative),
    ("superlative-object", "object want only=choose", superlative_object),
    ("comparative-object", "object perfect only=acquire", comparative_object),
    ("very", "copula present", very),
    ("too", "copula present", too),
    ("but-it", "copula present", but_it),
    ("age", "copula present", age),
    ("genitive-subject", "copula present", genitive_subject),
    ("how-adjective", "copula present", how_adjective),
)
