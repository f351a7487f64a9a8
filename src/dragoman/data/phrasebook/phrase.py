"""Noun phrases and pronouns in both languages at once, in every case. Knows no verbs and no chance."""

from dataclasses import dataclass, replace
from typing import Final

from dragoman.data.phrasebook import english, german
from dragoman.data.phrasebook.lexicon_nouns import Noun
from dragoman.data.phrasebook.lexicon_words import Adjective, Numeral

FOUR_CASES: Final = (german.NOMINATIVE, german.ACCUSATIVE, german.DATIVE, german.GENITIVE)


@dataclass(frozen=True, eq=False, slots=True)
class Phrase:
    english: str
    english_object: str
    german: tuple[str, ...]  # nominative, accusative, dative, genitive
    agree: int  # person and number of a verb with this subject, see `german`
    gender: str  # grammatical, m f n
    sex: str  # m or f where English says he or she, else empty
    pronoun: bool = False
    name: bool = False


def _pronoun(row: str) -> Phrase:
    subject, object_, agree, sex, *cases = row.split()
    sex = sex.strip("-")
    return Phrase(subject, object_, (*cases, ""), int(agree), sex or "n", sex, pronoun=True)


PRONOUNS: Final = tuple(
    _pronoun(row)
    for row in (
        "I me 0 - ich mich mir",
        "you you 1 - du dich dir",
        "he him 2 m er ihn ihm",
        "she her 2 f sie sie ihr",
        "we us 3 - wir uns uns",
        "they them 5 - sie sie ihnen",
    )
)
_, YOU, HE, SHE, WE, THEY = PRONOUNS
IT: Final = {
    "m": Phrase("it", "it", ("er", "ihn", "ihm", ""), 2, "m", "", pronoun=True),
    "f": Phrase("it", "it", ("sie", "sie", "ihr", ""), 2, "f", "", pronoun=True),
    "n": Phrase("it", "it", ("es", "es", "ihm", ""), 2, "n", "", pronoun=True),
}
WHO: Final = Phrase("who", "whom", ("wer", "wen", "wem", "wessen"), 2, "m", "", pronoun=True)
# The possessive that belongs to each pronoun, by agreement; the third person singular goes by sex.
_POSSESSIVES: Final = {0: "my", 1: "your", 3: "our", 5: "their"}


def possessive_of(owner: Phrase) -> str:
    """my, your, his... or empty where German and English would not agree (the child, its)."""
    if owner.agree == HE.agree:
        return {"m": "his", "f": "her", "": ""}[owner.sex]
    return _POSSESSIVES[owner.agree]


def pronoun_for(phrase: Phrase) -> Phrase:
    """The pronoun that takes up a phrase; things are it in English, er, sie or es in German."""
    if phrase.pronoun:
        return phrase
    if phrase.agree == THEY.agree:
        return THEY
    return {"m": HE, "f": SHE}.get(phrase.sex) or IT[phrase.gender]


def person(name: str, sex: str) -> Phrase:
    return Phrase(name, name, (name, name, name, f"{name}s"), HE.agree, sex, sex, name=True)


def noun_phrase(
    determiner: str,
    noun: Noun,
    adjective: Adjective | None = None,
    plural: bool = False,
    number: Numeral | None = None,
    digits: bool = False,
) -> Phrase:
    """determiner: the, a, this, every, which, no, a possessive, or empty for none."""
    gender = "p" if plural else noun.gender
    one = not plural and bool(noun.plural)
    count = "" if number is None else str(number.value) if digits else number.german
    words = (
        _german(determiner if one or determiner != "a" else "", count, adjective, noun, gender, case)
        for case in FOUR_CASES
    )
    text = _english(determiner, number, digits, adjective, noun, plural)
    agree = THEY.agree if plural else HE.agree
    return Phrase(text, text, tuple(words), agree, noun.gender, "" if plural else noun.sex)


def _german(determiner: str, count: str, adjective: Adjective | None, noun: Noun, gender: str, case: int) -> str:
    words = [german.determiner(determiner, gender, case), count]
    if adjective is not None:
        words.append(german.inflected(adjective.german, german.adjective_ending(determiner, gender, case)))
    words.append(german.noun_form(noun, gender == "p", case))
    return " ".join(word for word in words if word)


def _english(
    determiner: str,
    number: Numeral | None,
    digits: bool,
    adjective: Adjective | None,
    noun: Noun,
    plural: bool,
) -> str:
    words = english.plural(noun.english) if plural else noun.english
    if adjective is not None:
        words = f"{adjective.english} {words}"
    if number is not None:
        words = f"{number.value if digits else number.english} {words}"
    if determiner in ("a", "no"):
        return english.indefinite(words) if not plural and noun.plural else words
    if determiner == "this" and plural:
        determiner = "these"
    return f"{determiner} {words}".strip()


def owned(thing: Phrase, owner: Phrase) -> Phrase:
    """my father's car, das Auto meines Vaters; Annas Auto. The thing must carry the definite article."""
    bare = thing.english.removeprefix("the ")
    possessor = owner.english + ("'" if owner.english.endswith("s") else "'s")
    text = f"{possessor} {bare}"
    genitive = owner.german[german.GENITIVE]
    cases = tuple(f"{form} {genitive}" for form in thing.german)
    return replace(thing, english=text, english_object=text, german=cases)
