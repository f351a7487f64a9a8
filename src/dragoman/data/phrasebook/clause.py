"""One clause in both languages: verb chains, word order, negation, questions.

A clause is a subject, a verb with its tense, and parts that are already words; each part names the slot it
fills, and each language orders the slots its own way. Knows no lexical choice and no sentence patterns.
"""

from dataclasses import dataclass
from typing import Final

from dragoman.data.phrasebook import english, german
from dragoman.data.phrasebook.lexicon_verbs import Verb
from dragoman.data.phrasebook.phrase import HE, Phrase

# tense: (English auxiliary by agreement, German auxiliary). Modals take the bare infinitive in both.
_MODALS: Final = {
    "can": ("can", "können", False),
    "must": ("must", "müssen", False),
    "should": ("should", "sollen", False),
    "would": ("would", "mögen", False),
    "could": ("could", "können", True),
    "may": ("", "dürfen", False),
    "want": ("want", "wollen", False),
    "wanted": ("want", "wollen", True),
    "hadto": ("have", "müssen", True),
}
# Tenses that German says with an adverb: is reading, liest gerade.
ADVERB_OF_TENSE: Final = {"progressive": "gerade", "like": "gern", "usedto": "früher"}
_GERMAN_SLOTS: Final = (
    *(
        "object pronoun",
        "dative pronoun",
        "recipient pronoun",
        "dative",
        "recipient",
        "comment",
        "time",
        "often",
        "long",
        "object",
        "done",
    ),
    *("times", "not", "manner", "prep", "place", "goal", "predicate"),
)
_ENGLISH_SLOTS: Final = (
    *("dative pronoun", "object pronoun", "dative", "object", "recipient pronoun", "recipient"),
    *("predicate", "prep", "goal", "manner", "place"),
    *("times", "long", "time"),
)
_GERMAN_RANK: Final = {slot: rank for rank, slot in enumerate(_GERMAN_SLOTS)}
_ENGLISH_RANK: Final = {slot: rank for rank, slot in enumerate(_ENGLISH_SLOTS)}
_MIDDLE: Final = ("often", "done")  # English adverbs that stand before the main verb


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    slot: str
    english: str
    german: str


@dataclass(frozen=True, eq=False, slots=True)
class Clause:
    subject: Phrase
    verb: Verb
    tense: str
    parts: tuple[Part, ...] = ()
    negation: str = ""  # nicht, noch nicht..., or kein where the object says so itself
    front: str = ""  # the slot that comes first


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)


# English


def _english_chain(verb: Verb, tense: str, agree: int, support: bool) -> tuple[str, str]:
    """Auxiliary (may be empty) and the rest of the verb. support: the clause needs some auxiliary."""
    third = agree == HE.agree
    have = "has" if third else "have"
    do = "does" if third else "do"
    if tense.startswith("passive"):
        return _english_passive(tense.removeprefix("passive-"), english.participle(verb), agree)
    if verb.head == "be" and tense in ("present", "past", "did"):
        return english.be(agree, past=tense != "present"), ""
    match tense:
        case "present":
            return (do, verb.head) if support else ("", english.third_person(verb) if third else verb.head)
        case "past" | "did":
            return ("did", verb.head) if support else ("", english.past(verb))
        case "progressive":
            return english.be(agree), english.gerund(verb)
        case "perfect":
            return have, english.participle(verb)
        case "pluperfect":
            return "had", english.participle(verb)
        case "future":
            return "will", verb.head
        case _:
            return _english_modal(tense, verb.head, agree, support)


def _english_passive(tense: str, participle: str, agree: int) -> tuple[str, str]:
    match tense:
        case "past":
            return english.be(agree, past=True), participle
        case "perfect":
            return ("has" if agree == HE.agree else "have"), f"been {participle}"
        case "future":
            return "will", f"be {participle}"
        case _:
            return tense, f"be {participle}"


def _english_modal(tense: str, head: str, agree: int, support: bool) -> tuple[str, str]:
    third = agree == HE.agree
    match tense:
        case "can" | "must" | "should" | "could":
            return tense, head
        case "may":
            return english.be(agree), f"allowed to {head}"
        case "would":
            return tense, f"like to {head}"
        case "want" | "like":
            do = "does" if third else "do"
            return (do, f"{tense} to {head}") if support else ("", f"{tense}{'s' if third else ''} to {head}")
        case "wanted":
            return ("did", f"want to {head}") if support else ("", f"wanted to {head}")
        case "hadto":
            return ("did", f"have to {head}") if support else ("", f"had to {head}")
        case "usedto":
            return "", f"used to {head}"
        case _:
            raise AssertionError(f"unknown tense {tense}")


def _english_parts(clause: Clause) -> str:
    """Everything after the verb itself."""
    verb = clause.verb
    after = [part for part in clause.parts if part.slot in _ENGLISH_RANK and part.slot != clause.front]
    after.sort(key=lambda part: _ENGLISH_RANK[part.slot])
    words = [part.english for part in after]
    pronoun_first = verb.particle and bool(after) and after[0].slot == "object pronoun"
    if verb.tail:
        words.insert(1 if pronoun_first else 0, verb.tail)
    return _joined(*words)


def english_statement(clause: Clause) -> str:
    return _english_finite(clause, inverted=False)


def english_question(clause: Clause) -> str:
    """Auxiliary first: does he read the book."""
    return _english_finite(clause, inverted=True)


def _english_finite(clause: Clause, inverted: bool) -> str:
    subject = clause.subject
    negated = clause.negation != ""
    auxiliary, main = _english_chain(clause.verb, clause.tense, subject.agree, inverted or negated)
    middle = " ".join(part.english for part in clause.parts if part.slot in _MIDDLE and part.slot != clause.front)
    first = (auxiliary, subject.english) if inverted else (subject.english, auxiliary)
    negator = "not" if negated else ""
    front = _english_front(clause)
    words = _joined(front, *first, negator, middle, main, _english_parts(clause))
    return words.replace("can not ", "cannot ") if negated else words


def _english_front(clause: Clause) -> str:
    for part in clause.parts:
        if part.slot == clause.front:
            comma = part.slot in ("comment", "place") and part.english != "perhaps"
            return part.english + ("," if comma else "")
    return ""


def english_infinitive(clause: Clause) -> str:
    """Base form and what follows: read the book. Also the imperative."""
    return _joined(clause.verb.head, _english_parts(clause))


def english_gerund(clause: Clause) -> str:
    return _joined(english.gerund(clause.verb), _english_parts(clause))


# German


def _german_chain(verb: Verb, tense: str, agree: int) -> tuple[str, str]:
    """Finite verb and the words that close the clause (without a separable prefix)."""
    if tense in _MODALS:
        _, modal, past = _MODALS[tense]
        return german.auxiliary(modal, agree, past), german.infinitive(verb)
    participle = german.participle(verb)
    match tense:
        case "present" | "progressive" | "like":
            return german.present(verb, agree), ""
        case "past" | "usedto":
            return german.preterite(verb, agree), ""
        case "perfect" | "did":
            return german.auxiliary("sein" if verb.sein else "haben", agree), participle
        case "pluperfect":
            return german.auxiliary("sein" if verb.sein else "haben", agree, past=True), participle
        case "future":
            return german.auxiliary("werden", agree), german.infinitive(verb)
        case "passive-past":
            return german.auxiliary("werden", agree, past=True), participle
        case "passive-perfect":
            return german.auxiliary("sein", agree), f"{participle} worden"
        case "passive-future":
            return german.auxiliary("werden", agree), f"{participle} werden"
        case "passive-must" | "passive-can":
            modal = _MODALS[tense.removeprefix("passive-")][1]
            return german.auxiliary(modal, agree), f"{participle} werden"
        case _:
            raise AssertionError(f"unknown tense {tense}")


def _german_middle(clause: Clause, subject: str, agree: int) -> str:
    """The words between the finite verb and the closing ones; subject is empty if it stands elsewhere."""
    parts = [(part.slot, part.german) for part in clause.parts if part.slot != clause.front]
    if clause.tense in ADVERB_OF_TENSE:
        parts.append(("often", ADVERB_OF_TENSE[clause.tense]))
    if clause.negation not in ("", "kein"):
        parts.append(("not", clause.negation))
    parts.sort(key=lambda part: _GERMAN_RANK[part[0]])
    words = [word for _, word in parts]
    passive = clause.tense.startswith("passive")
    reflexive = german.reflexive(agree) if clause.verb.reflexive and not passive else ""
    light = clause.subject.pronoun or clause.subject.name
    return _joined(subject, reflexive, *words) if light else _joined(reflexive, subject, *words)


def _german_front(clause: Clause) -> str:
    return next((part.german for part in clause.parts if part.slot == clause.front), "")


def _is_joined(clause: Clause) -> bool:
    return clause.tense in ("present", "past", "progressive", "like", "usedto")


def german_main(clause: Clause) -> str:
    """Verb second."""
    subject = clause.subject.german[german.NOMINATIVE]
    front = _german_front(clause)
    finite, closing = _german_chain(clause.verb, clause.tense, clause.subject.agree)
    closing = clause.verb.prefix if _is_joined(clause) else closing
    middle = _german_middle(clause, subject if front else "", clause.subject.agree)
    return _joined(front or subject, finite, middle, closing)


def german_verb_first(clause: Clause) -> str:
    """Questions, and main clauses whose first place is taken by something outside the clause."""
    finite, closing = _german_chain(clause.verb, clause.tense, clause.subject.agree)
    closing = clause.verb.prefix if _is_joined(clause) else closing
    middle = _german_middle(clause, clause.subject.german[german.NOMINATIVE], clause.subject.agree)
    return _joined(finite, middle, closing)


def german_verb_last(clause: Clause) -> str:
    """Subordinate order, without the conjunction."""
    finite, closing = _german_chain(clause.verb, clause.tense, clause.subject.agree)
    if _is_joined(clause):
        finite = clause.verb.prefix + finite
    middle = _german_middle(clause, clause.subject.german[german.NOMINATIVE], clause.subject.agree)
    return _joined(middle, closing, finite)


def german_predicate_last(clause: Clause) -> str:
    """Verb-last without the subject: for relative clauses whose pronoun is the subject."""
    finite, closing = _german_chain(clause.verb, clause.tense, clause.subject.agree)
    if _is_joined(clause):
        finite = clause.verb.prefix + finite
    return _joined(_german_middle(clause, "", clause.subject.agree), closing, finite)


def german_zu_infinitive(clause: Clause) -> str:
    return _joined(_german_middle(clause, "", clause.subject.agree), german.zu_infinitive(clause.verb))


def german_infinitive(clause: Clause) -> str:
    return _joined(_german_middle(clause, "", clause.subject.agree), german.infinitive(clause.verb))


def german_imperative(clause: Clause) -> str:
    return _joined(german.imperative(clause.verb), _german_middle(clause, "", clause.subject.agree), clause.verb.prefix)
