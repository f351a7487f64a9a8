"""Sentence patterns with relative clauses and genitives.

Each is a function (draw, main verb) -> (English, German); the list at the end names them and the
specification that their main verbs must fit.
"""

from typing import Final

from dragoman.data.phrasebook import clause as clauses
from dragoman.data.phrasebook import german
from dragoman.data.phrasebook import selection as select
from dragoman.data.phrasebook.clause import Clause
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.frames import build, frame_tags, object_part, parse_spec
from dragoman.data.phrasebook.lexicon_verbs import Verb
from dragoman.data.phrasebook.phrase import THEY, Phrase, noun_phrase, owned
from dragoman.data.phrasebook.predication import Pair, Special, comparable, copula, nominative, statement

_RELATIVE: Final = {"m": "der den dem", "f": "die die der", "n": "das das dem", "p": "die die denen"}


def genitive_object(draw: Draw, verb: Verb) -> Pair:
    clause = build(draw, parse_spec("object past subj=third obj=none"), verb)
    noun = draw.word(select.nouns_of(frame_tags(verb, "object")))
    owner = select.agent(draw, "clear")
    thing = noun_phrase("the", noun, select.adjective_for(draw, noun, 0.3))
    return statement(clause, object_part(owned(thing, owner)))


def _relative(head: Phrase, case: int, pronoun_en: str, en: str, de: str) -> Phrase:
    """The phrase with a relative clause after it; the German one is closed by a comma."""
    pronoun = _RELATIVE["p" if head.agree == THEY.agree else head.gender].split()[case]
    forms = tuple(f"{form}, {pronoun} {de}," for form in head.german)
    text = f"{head.english} {pronoun_en} {en}".replace("  ", " ")
    return Phrase(text, text, forms, head.agree, head.gender, head.sex)


def _who_does(draw: Draw, head: Phrase, spec: str) -> Phrase:
    clause = build(draw, parse_spec(spec))
    acting = Clause(head, clause.verb, clause.tense, clause.parts)
    text = clauses.english_statement(acting).removeprefix(head.english).strip()
    return _relative(head, german.NOMINATIVE, "who", text, clauses.german_predicate_last(acting))


def relative_subject(draw: Draw, verb: Verb) -> Pair:
    draw.use(verb)
    noun = draw.word(select.nouns_of("person"))
    head = noun_phrase("the", noun, plural=draw.chance(0.2))
    adjective = draw.word(select.adjectives_of(select.STATE))
    en, de = copula(_who_does(draw, head, "object perfect subj=they obj=the"))
    return f"{en} {adjective.english}.", f"{de} {adjective.german}."


def relative_known(draw: Draw, verb: Verb) -> Pair:
    noun = draw.word(select.nouns_of("person"))
    head = noun_phrase("the", noun, select.adjective_for(draw, noun, 0.2), plural=draw.chance(0.2))
    who = _who_does(draw, head, draw.one_of(("alone present place subj=they", "goal perfect subj=they")))
    return statement(build(draw, parse_spec("object present obj=none whom"), verb), object_part(who))


def this_is_who(draw: Draw, verb: Verb) -> Pair:
    """The main verb is that of the relative clause."""
    noun = draw.word(select.nouns_of("person"))
    head = noun_phrase("the", noun, select.adjective_for(draw, noun, 0.4))
    clause = build(draw, parse_spec("object perfect obj=pronoun whom subj=they"), verb)
    acting = Clause(head, clause.verb, clause.tense, clause.parts)
    text = clauses.english_statement(acting).removeprefix(head.english).strip()
    who = _relative(
        head,
        german.NOMINATIVE,
        "who",
        text,
        clauses.german_predicate_last(acting),
    )
    return f"this is {who.english}.", f"das ist {nominative(who)}."


def relative_object(draw: Draw, verb: Verb) -> Pair:
    """The book that the man read is interesting; the verb is that of the relative clause."""
    noun = draw.word(select.nouns_of(frame_tags(verb, "object")))
    head = noun_phrase("the", noun, plural=bool(noun.plural) and draw.chance(0.2))
    clause = build(draw, parse_spec("object perfect obj=none subj=any"), verb)
    linked = "whom" if noun.kind in ("person", "kin") else "that"
    phrase = _relative(
        head, german.ACCUSATIVE, linked, clauses.english_statement(clause), clauses.german_verb_last(clause)
    )
    adjective = draw.word(comparable(noun))
    en, de = copula(phrase)
    return f"{en} very {adjective.english}.", f"{de} sehr {adjective.german}."


def relative_dative(draw: Draw, verb: Verb) -> Pair:
    noun = draw.word(select.nouns_of("person"))
    head = noun_phrase("the", noun, plural=draw.chance(0.2))
    clause = build(draw, parse_spec("dative perfect obj=none"), verb)
    phrase = _relative(head, german.DATIVE, "whom", clauses.english_statement(clause), clauses.german_verb_last(clause))
    adjective = draw.word(comparable(noun))
    en, de = copula(phrase)
    return f"{en} very {adjective.english}.", f"{de} sehr {adjective.german}."


def relative_place(draw: Draw, verb: Verb) -> Pair:
    noun = draw.word(select.nouns_of("building,fun,home"))
    head = noun_phrase("the", noun)
    clause = build(draw, parse_spec("alone perfect place=none"), verb)
    phrase = _relative(
        head, german.DATIVE, "in which", clauses.english_statement(clause), clauses.german_verb_last(clause)
    )
    phrase = Phrase(
        phrase.english,
        phrase.english,
        tuple(form.replace(", ", ", in ", 1) for form in phrase.german),
        2,
        "n",
        "",
    )
    adjective = draw.word(comparable(noun))
    en, de = copula(phrase, past=True)
    return f"{en} {adjective.english}.", f"{de} {adjective.german}."


RELATIVE: Final[tuple[Special, ...]] = (
    ("genitive-object", "object past thing", genitive_object),
    ("relative-subject", "copula present", relative_subject),
    ("relative-known", "object present whom", relative_known),
    ("this-is-who", "object perfect whom", this_is_who),
    ("relative-object", "object perfect thing", relative_object),
    ("relative-dative", "dative perfect", relative_dative),
    ("relative-place", "alone perfect place", relative_place),
)
