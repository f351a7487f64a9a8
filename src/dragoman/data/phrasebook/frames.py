"""From a short specification such as "object past time=past front=time" to a clause with drawn words.

The specification language is what patterns are written in; see `Spec`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from dragoman.data.phrasebook import german
from dragoman.data.phrasebook import selection as select
from dragoman.data.phrasebook.clause import ADVERB_OF_TENSE, Clause, Part
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.lexicon_verbs import Verb, verbs
from dragoman.data.phrasebook.phrase import HE, THEY, WHO, YOU, Phrase, pronoun_for
from dragoman.data.phrasebook.verb_groups import VERB_GROUPS

_MODALS: Final = "progressive can must should would could may want wanted hadto like usedto"
_MODAL_TENSES: Final = frozenset(_MODALS.split())
_DATED: Final = frozenset({"time", "done", "times", "often", "long"})  # not said of lasting states
_NEGATIONS = {"": "", "yes": "nicht", "yet": "noch nicht", "longer": "nicht mehr"}
_INNER = {adverb.german: adverb for adverb in select.adverbs_of("inner")}


@dataclass(frozen=True, eq=False)
class Spec:
    """frame tense option=value ...

    subj=   kind of subject (see `selection.subject`), who, or A: a pronoun for the first clause's subject
    obj=    kind of object (see `selection.thing`), or none
    time= often= manner= comment= done= long=   an adverb of that kind; time=day, date or clock are numeric
    place   where it happens          front=SLOT   what comes first instead of the subject
    only=   the verbs of that group (see `verb_groups`)
    not     negated                   free         only verbs for what one does on purpose
    """

    frame: str
    tense: str
    options: dict[str, str] = field(default_factory=dict[str, str])

    def get(self, option: str, default: str = "") -> str:
        return self.options.get(option, default)


@cache
def parse_spec(text: str) -> Spec:
    frame, tense, *rest = text.split()
    pairs = (option.partition("=") for option in rest)
    return Spec(frame, tense, {key: value or "yes" for key, _, value in pairs})


def frame_tags(verb: Verb, frame: str) -> str:
    return next(tags for name, tags in verb.frames.items() if name.split("/")[0] == frame)


@cache
def verbs_for(spec: Spec) -> tuple[Verb, ...]:
    """The verbs that fit the frame and everything the specification asks of them."""
    frame = "object" if spec.frame == "passive" else spec.frame
    found = [verb for verb in verbs(frame) if not _needs_freedom(spec) or verb.free]
    if frame == "object" and (spec.get("obj") == "pronoun" or spec.get("whom")):
        found = [verb for verb in found if {"person"} & set(frame_tags(verb, frame).split(","))]
    if spec.get("thing"):
        people = {"person", "kin"}
        found = [verb for verb in found if not people & set(frame_tags(verb, spec.frame).split(","))]
    if spec.tense in ("perfect", "pluperfect") or _DATED & spec.options.keys():
        found = [verb for verb in found if not verb.state]
    if spec.get("only"):
        found = [verb for verb in found if verb.english in VERB_GROUPS[spec.get("only")]]
    if spec.get("place"):
        found = [verb for verb in found if place_tags(verb)]
    assert found, f"no verb for {spec}"
    return tuple(found)


def _needs_freedom(spec: Spec) -> bool:
    return spec.tense in _MODAL_TENSES or spec.frame == "passive" or "free" in spec.options


def place_tags(verb: Verb) -> str:
    tags = frame_tags(verb, "alone").split(",") if "alone" in verb.frames else []
    return ",".join(tag for tag in tags if tag not in ("animal", ""))


def build(draw: Draw, spec: Spec, verb: Verb | None = None, earlier: Clause | None = None) -> Clause:
    """Draws a clause. earlier: the first clause of the sentence, for subj=A."""
    if verb is None:
        verb = draw.word(verbs_for(spec))
    else:
        draw.use(verb)
    subject = _subject(draw, spec, verb, earlier)
    parts = [*FRAMES[spec.frame](draw, spec, verb, subject), *_adverbials(draw, spec, verb)]
    if spec.tense in ADVERB_OF_TENSE:
        draw.use(_INNER[ADVERB_OF_TENSE[spec.tense]])
    negation = "kein" if spec.get("obj") == "no" else _NEGATIONS[spec.get("not")]
    return Clause(subject, verb, spec.tense, tuple(parts), negation, spec.get("front"))


def _subject(draw: Draw, spec: Spec, verb: Verb, earlier: Clause | None) -> Phrase:
    kind = spec.get("subj", "any")
    if kind == "A":
        assert earlier is not None
        return pronoun_for(earlier.subject)
    if kind == "who":
        return WHO
    if spec.frame in ("lie", "passive"):
        tags = frame_tags(verb, "lie" if spec.frame == "lie" else "object")
        return select.thing(draw, tags, draw.one_of(("the", "the", "this")), THEY)
    animals = spec.frame == "alone" and "animal" in frame_tags(verb, "alone").split(",")
    subject = select.subject(draw, kind, animals)
    # du with a preterite (du ludst ein) is right but nobody says it. And "they read", "we cut" could be
    # either tense, so verbs whose past equals the present get a subject in the third person singular.
    unclear = verb.english_past == verb.head and spec.tense in ("present", "past") and subject.agree != HE.agree
    awkward = spec.tense in ("past", "pluperfect") and subject is YOU
    if (unclear or awkward) and kind != "you":
        return select.agent(draw, "clear")
    return subject


def _adverbials(draw: Draw, spec: Spec, verb: Verb) -> list[Part]:
    parts = [
        select.adverb(draw, spec.get(slot), slot)
        for slot in ("often", "manner", "comment", "done", "long", "times")
        if slot in spec.options
    ]
    if "time" in spec.options:
        numeric = {"day": select.weekday, "date": select.date, "clock": select.clock_time}
        kind = spec.get("time")
        parts.append(numeric[kind](draw) if kind in numeric else select.adverb(draw, kind, "time"))
    if spec.get("place") == "yes":
        parts.append(select.place(draw, place_tags(verb)))
    return parts


def _nothing(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    del draw, spec, verb, subject
    return []


def _object(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    kind = spec.get("obj", "any")
    if kind == "none":
        return []
    tags = "person,kin" if spec.get("whom") else frame_tags(verb, "object")
    phrase = select.thing(draw, tags, kind, subject)
    return [object_part(phrase)]


def object_part(phrase: Phrase) -> Part:
    slot = "object pronoun" if phrase.pronoun else "object"
    return Part(slot, phrase.english_object, phrase.german[german.ACCUSATIVE])


def dative_part(phrase: Phrase) -> Part:
    slot = "dative pronoun" if phrase.pronoun else "dative"
    return Part(slot, phrase.english_object, phrase.german[german.DATIVE])


def _recipient(draw: Draw, kind: str, subject: Phrase) -> Part:
    if kind == "any":
        kind = "pronoun" if draw.chance(0.25) else "the"
    return dative_part(select.thing(draw, "person,kin", kind, subject, adjective_share=0.25))


def _dative(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    del verb
    kind = spec.get("obj", "any")
    return [] if kind == "none" else [_recipient(draw, kind, subject)]


def _give(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    recipient = _recipient(draw, spec.get("to", "any"), subject)
    if "to" in verb.frames:
        slot = recipient.slot.replace("dative", "recipient")
        recipient = Part(slot, f"to {recipient.english}", recipient.german)
    if spec.get("obj") == "none":
        return [recipient]
    phrase = select.thing(draw, frame_tags(verb, "give"), spec.get("obj", "any"), subject)
    return [recipient, object_part(phrase)]


def _prep(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    name, tags = next((name, tags) for name, tags in verb.frames.items() if name.startswith("prep/"))
    _, preposition, case = name.split("/")
    kind = spec.get("obj", "any")
    phrase = select.thing(draw, tags, "the" if kind == "any" and draw.chance(0.5) else kind, subject)
    form = phrase.german[german.ACCUSATIVE if case == "A" else german.DATIVE]
    return [Part("prep", phrase.english_object, german.contracted(preposition, form))]


def _goal(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    return [] if spec.get("obj") == "none" else [select.goal(draw, frame_tags(verb, "goal"), subject)]


def _city(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    del verb, subject
    return [] if spec.get("obj") == "none" else [select.city_goal(draw)]


def _put(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    tags = frame_tags(verb, "put")
    phrase = select.thing(draw, tags, spec.get("obj", "any"), subject)
    where = tags if tags in ("stood", "heavy") else "top,inside"
    spot = select.location(draw, german.ACCUSATIVE, where)
    if verb.english == "throw" and spot.english.startswith("in "):
        spot = Part(spot.slot, f"into {spot.english[3:]}", spot.german)
    return [object_part(phrase), spot]


def _lie(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    del subject
    if spec.get("obj") == "none":
        return []
    where = "stood" if verb.frames["lie"] == "stood" else "top,inside"
    return [select.location(draw, german.DATIVE, where)]


def _predicate(draw: Draw, spec: Spec, verb: Verb, subject: Phrase) -> list[Part]:
    del spec, verb, subject
    adjective = draw.word(select.adjectives_of(select.STATE))
    return [Part("predicate", adjective.english, adjective.german)]


FRAMES: dict[str, Callable[[Draw, Spec, Verb, Phrase], list[Part]]] = {
    "object": _object,
    "dative": _dative,
    "give": _give,
    "prep": _prep,
    "alone": _nothing,
    "passive": _nothing,
    "goal": _goal,
    "city": _city,
    "put": _put,
    "lie": _lie,
    "predicate": _predicate,
    "copula": _predicate,
    "that": _nothing,
    "whether": _nothing,
    "infinitive": _nothing,
}
