"""German word forms: articles, declension, conjugation, contractions. Knows no sentences and no English.

Cases are the indices 0 nominative, 1 accusative, 2 dative, 3 genitive.
Persons are 0 ich, 1 du, 2 er, 3 wir, 4 ihr, 5 sie.
"""

import re
from functools import cache
from typing import Final

from dragoman.data.phrasebook.lexicon_nouns import Noun
from dragoman.data.phrasebook.lexicon_verbs import Verb
from dragoman.data.phrasebook.lexicon_words import Adjective

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)

# One string per gender (m f n) and the plural (p): the endings of the four cases.
_DEFINITE: Final = {
    "m": "der den dem des",
    "f": "die die der der",
    "n": "das das dem des",
    "p": "die die den der",
}
_DER_WORD: Final = {"m": "er en em es", "f": "e e er er", "n": "es es em es", "p": "e e en er"}
_EIN_WORD: Final = {"m": "- en em es", "f": "e e er er", "n": "- - em es", "p": "e e en er"}
_WEAK: Final = {"m": "e en en en", "f": "e e en en", "n": "e e en en", "p": "en en en en"}
_MIXED: Final = {"m": "er en en en", "f": "e e en en", "n": "es es en en", "p": "en en en en"}
_STRONG: Final = {"m": "er en em en", "f": "e e er er", "n": "es es em en", "p": "e e en er"}

_DER_WORDS: Final = {"this": "dies", "every": "jed", "which": "welch"}
_EIN_WORDS: Final = {
    "a": "ein",
    "no": "kein",
    "my": "mein",
    "your": "dein",
    "his": "sein",
    "her": "ihr",
    "our": "unser",
    "their": "ihr",
}
_CONTRACTIONS: Final = {
    "in dem": "im",
    "an dem": "am",
    "zu dem": "zum",
    "zu der": "zur",
    "von dem": "vom",
    "bei dem": "beim",
    "in das": "ins",
    "an das": "ans",
}
_INSEPARABLE: Final = ("be", "er", "ver", "ent", "zer", "emp", "ge", "wider", "über")
_PRESENT: Final = {
    "sein": "bin bist ist sind seid sind",
    "haben": "habe hast hat haben habt haben",
    "werden": "werde wirst wird werden werdet werden",
    "wissen": "weiß weißt weiß wissen wisst wissen",
    "können": "kann kannst kann können könnt können",
    "müssen": "muss musst muss müssen müsst müssen",
    "wollen": "will willst will wollen wollt wollen",
    "dürfen": "darf darfst darf dürfen dürft dürfen",
    "sollen": "sollte solltest sollte sollten solltet sollten",
    "mögen": "möchte möchtest möchte möchten möchtet möchten",
}
_PAST: Final = {
    "sein": "war",
    "haben": "hatte",
    "werden": "wurde",
    "können": "konnte",
    "müssen": "musste",
    "wollen": "wollte",
    "dürfen": "durfte",
}
_REFLEXIVE: Final = ("mich", "dich", "sich", "uns", "euch", "sich")


def _cell(table: dict[str, str], gender: str, case: int) -> str:
    return table[gender].split()[case].strip("-")


@cache
def determiner(word: str, gender: str, case: int) -> str:
    """The German form of an English determiner, e.g. ("this", "m", ACCUSATIVE) -> "diesen"."""
    if word == "the":
        return _cell(_DEFINITE, gender, case)
    if word in _DER_WORDS:
        return _DER_WORDS[word] + _cell(_DER_WORD, gender, case)
    return _EIN_WORDS[word] + _cell(_EIN_WORD, gender, case) if word in _EIN_WORDS else ""


@cache
def adjective_ending(word: str, gender: str, case: int) -> str:
    """The ending after this (English) determiner: weak, mixed, or strong where there is none."""
    if word == "the" or word in _DER_WORDS:
        return _cell(_WEAK, gender, case)
    return _cell(_MIXED if word in _EIN_WORDS else _STRONG, gender, case)


def inflected(stem: str, ending: str) -> str:
    """An adjective with its ending; some stems change: hoch, hohe; dunkel, dunkle; teuer, teure."""
    if stem.endswith("hoch"):
        stem = stem[:-2] + "h"
    elif stem.endswith("el") or stem == "teuer":
        stem = stem[:-2] + stem[-1]
    elif stem.endswith("e"):
        stem = stem[:-1]
    return stem + ending


@cache
def noun_form(noun: Noun, is_plural: bool, case: int) -> str:
    if is_plural:
        add_n = case == DATIVE and not noun.plural.endswith(("n", "s"))
        return noun.plural + ("n" if add_n else "")
    if noun.weak:
        return noun.german if case == NOMINATIVE else noun.plural
    if case == GENITIVE and noun.gender != "f":
        return noun.german + _genitive_ending(noun.german)
    return noun.german


def _genitive_ending(word: str) -> str:
    if word == "Koch":
        return "s"
    if word.endswith("nis"):
        return "ses"
    if word.endswith(("s", "ß", "z", "x")):
        return "es"
    vowels = len(re.findall("[aeiouäöü]+", word.lower()))
    return "es" if vowels == 1 and not word.endswith(("f", "y")) else "s"


@cache
def superlative_stem(adjective: Adjective) -> str:
    """The stem that takes adjective endings (der schnellste), also in "am schnellsten"."""
    irregular = {"gut": "best", "groß": "größt", "hoch": "höchst", "teuer": "teuerst", "dunkel": "dunkelst"}
    if adjective.german in irregular:
        return irregular[adjective.german]
    stem = adjective.german_comparative.removesuffix("er")
    hissing = stem.endswith(("t", "d", "s", "ß", "z", "sch")) and not stem.endswith(("isch", "end"))
    return stem + ("est" if hissing or stem.endswith("neu") else "st")


def contracted(preposition: str, phrase: str) -> str:
    """Preposition and phrase, with im, zum, ins... where the phrase starts with a plain article."""
    article, _, rest = phrase.partition(" ")
    short = _CONTRACTIONS.get(f"{preposition} {article}")
    return f"{short} {rest}" if short else f"{preposition} {phrase}"


def reflexive(agree: int) -> str:
    return _REFLEXIVE[agree]


def _stem(root: str) -> str:
    return root[:-2] if root.endswith("en") else root[:-1]


def _link(stem: str) -> str:
    """The e between stem and ending: arbeit-e-t, öffn-e-t, zeichn-e-t; but lern-t, wohn-t, komm-t."""
    if stem.endswith(("t", "d")):
        return "e"
    nasal = re.search("[^aeiouäöülrmnh][nm]$|ch[nm]$", stem)
    return "e" if nasal else ""


@cache
def present(verb: Verb, agree: int) -> str:
    """Finite form without the separable prefix."""
    return auxiliary(verb.root, agree) if verb.root in _PRESENT else _regular_present(verb, agree)


def _regular_present(verb: Verb, agree: int) -> str:
    stem = _stem(verb.root)
    if agree in (3, 5):
        return verb.root
    if agree == 0:
        return (stem[:-2] + "le") if verb.root.endswith("eln") else stem + "e"
    changed = bool(verb.german_stem) and agree in (1, 2)
    stem = verb.german_stem if changed else stem
    link = "" if changed else _link(stem)
    if agree == 1:
        return stem + ("t" if stem.endswith(("s", "ß", "z", "x")) else link + "st")
    return stem if changed and stem.endswith("t") else stem + link + "t"


def auxiliary(root: str, agree: int, past: bool = False) -> str:
    if past:
        return _past_ending(_PAST[root], agree)
    return _PRESENT[root].split()[agree]


def _past_ending(form: str, agree: int) -> str:
    weak = form.endswith("e")
    endings = ("", "st", "", "n", "t", "n") if weak else ("", "st", "", "en", "t", "en")
    return form + endings[agree]


@cache
def preterite(verb: Verb, agree: int) -> str:
    stem = _stem(verb.root)
    return _past_ending(verb.german_past or stem + _link(stem) + "te", agree)


@cache
def participle(verb: Verb) -> str:
    """With the separable prefix: angerufen."""
    if verb.german_participle:
        return verb.prefix + verb.german_participle
    stem = _stem(verb.root)
    bare = verb.root.endswith("ieren") or verb.root.startswith(_INSEPARABLE)
    if bare and verb.root in ("gießen", "gehen", "geben"):
        bare = False
    return verb.prefix + ("" if bare else "ge") + stem + _link(stem) + "t"


def infinitive(verb: Verb) -> str:
    return verb.prefix + verb.root


def zu_infinitive(verb: Verb) -> str:
    return f"{verb.prefix}zu{verb.root}" if verb.prefix else f"zu {verb.root}"


@cache
def imperative(verb: Verb) -> str:
    """Of du, without the prefix: lies, warte, fahr, sammle."""
    stem = _stem(verb.root)
    if verb.german_stem and "i" in verb.german_stem and "e" in stem:
        return verb.german_stem
    if verb.root.endswith("eln"):
        return stem[:-2] + "le"
    ending_e = bool(_link(stem)) or verb.root.endswith(("ern", "igen", "ieren"))
    return stem + ("e" if ending_e else "")
