"""English word forms: plurals, articles, verbs, comparison. Knows no sentences and no German."""

from functools import cache

from dragoman.data.phrasebook.lexicon_verbs import Verb
from dragoman.data.phrasebook.lexicon_words import Adjective

_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "mouse": "mice",
    "goose": "geese",
    "knife": "knives",
    "wolf": "wolves",
    "shelf": "shelves",
    "thief": "thieves",
    "policeman": "policemen",
    "fisherman": "fishermen",
    "potato": "potatoes",
    "tomato": "tomatoes",
}
_SIBILANTS = ("s", "x", "z", "ch", "sh")
_SOUNDS_CONSONANT = ("uni", "use", "eu", "one")
_SOUNDS_VOWEL = ("hour", "hon")
_BE = ("am", "are", "is", "are", "are", "are")
_WAS = ("was", "were", "was", "were", "were", "were")


def with_s(word: str) -> str:
    """The ending of plurals and of the third person: -s, -es or -ies."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith((*_SIBILANTS, "go", "do")):
        return word + "es"
    return word + "s"


def plural(noun: str) -> str:
    return _PLURALS.get(noun) or with_s(noun)


def indefinite(words: str) -> str:
    """The words with a or an in front."""
    vowel = words[0] in "aeiou" and not words.startswith(_SOUNDS_CONSONANT)
    return f"an {words}" if vowel or words.startswith(_SOUNDS_VOWEL) else f"a {words}"


def be(agree: int, past: bool = False) -> str:
    return _WAS[agree] if past else _BE[agree]


@cache
def third_person(verb: Verb) -> str:
    irregular = {"have": "has", "be": "is"}
    return irregular.get(verb.head) or with_s(verb.head)


def _doubles(word: str) -> bool:
    """Stressed consonant-vowel-consonant ends double their last letter: plan, planned (British travelled)."""
    stressed_late = word in ("begin", "forget", "travel")
    short = sum(letter in "aeiou" for letter in word) == 1
    closed = len(word) > 2 and word[-1] not in "aeiouwxy" and word[-2] in "aeiou" and word[-3] not in "aeiou"
    return closed and (short or stressed_late)


@cache
def past(verb: Verb) -> str:
    if verb.english_past:
        return verb.english_past
    word = verb.head
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + (word[-1] if _doubles(word) else "") + "ed"


@cache
def participle(verb: Verb) -> str:
    if verb.head == "be":
        return "been"
    return verb.english_participle or past(verb)


@cache
def gerund(verb: Verb) -> str:
    word = verb.head
    if word in ("lie", "be"):
        return {"lie": "lying", "be": "being"}[word]
    if word.endswith("e") and not word.endswith("ee"):
        return word[:-1] + "ing"
    return word + (word[-1] if _doubles(word) else "") + "ing"


@cache
def comparative(adjective: Adjective) -> str:
    form = adjective.english_comparative
    if form == "more":
        return f"more {adjective.english}"
    return form if form not in ("er", "-") else _with_r(adjective.english, "er")


@cache
def superlative(adjective: Adjective) -> str:
    form = adjective.english_comparative
    if form in ("better", "worse"):
        return {"better": "best", "worse": "worst"}[form]
    if form == "more":
        return f"most {adjective.english}"
    return _with_r(adjective.english, "est")


def _with_r(word: str, ending: str) -> str:
    if word.endswith("e"):
        return word + ending[1:]
    if word.endswith("y") and word != "shy":
        return word[:-1] + "i" + ending
    doubles = word in ("big", "hot", "sad", "wet")
    return word + (word[-1] if doubles else "") + ending
