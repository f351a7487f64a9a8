"""The embedded corpus: inflection, the promises made about the splits, and sentences a person has read.

`tests/golden/phrasebook.tsv` was read line by line. After a change of tables or grammar write it anew
(`python tests/unit/data/test_phrasebook.py`) and read every line that differs before it is kept.
"""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from dragoman.data.phrasebook import english, german
from dragoman.data.phrasebook.clause import Clause, Part, english_statement, german_main, german_verb_last
from dragoman.data.phrasebook.draw import Draw
from dragoman.data.phrasebook.generate import (
    Draft,
    Sentence,
    draft,
    draft_splits,
    phrasebook,
    sample_per_pattern,
    skeleton,
)
from dragoman.data.phrasebook.lexicon_nouns import NOUNS, Noun
from dragoman.data.phrasebook.lexicon_verbs import VERBS, Verb
from dragoman.data.phrasebook.lexicon_words import ADJECTIVES, ADVERBS, Adjective
from dragoman.data.phrasebook.patterns import all_patterns
from dragoman.data.phrasebook.phrase import PRONOUNS, noun_phrase, owned

GOLDEN = Path(__file__).parents[2] / "golden" / "phrasebook.tsv"
FUNCTION_WORDS = (
    "the a an this these my your his her our their i you he she we they him them me us it to in on at of not did do"
    " does will has have had is are was were must can want wants should that because who what which"
)
Splits = tuple[list[Draft], list[Draft], list[Draft]]
SHE, WE = PRONOUNS[3], PRONOUNS[4]


@pytest.fixture(scope="module")
def splits() -> Splits:
    return draft_splits(1, 50_000, 1_000, 1_000)


def noun(lemma: str) -> Noun:
    return next(entry for entry in NOUNS if entry.english == lemma)


def verb(german_lemma: str) -> Verb:
    return next(entry for entry in VERBS if entry.german == german_lemma)


def adjective(lemma: str) -> Adjective:
    return next(entry for entry in ADJECTIVES if entry.english == lemma)


# German forms


@pytest.mark.parametrize(
    ("determiner", "lemma", "plural", "cases"),
    [
        ("the", "table", False, "der alte Tisch|den alten Tisch|dem alten Tisch|des alten Tisches"),
        ("the", "lamp", False, "die alte Lampe|die alte Lampe|der alten Lampe|der alten Lampe"),
        ("the", "house", False, "das alte Haus|das alte Haus|dem alten Haus|des alten Hauses"),
        ("the", "house", True, "die alten Häuser|die alten Häuser|den alten Häusern|der alten Häuser"),
        ("a", "table", False, "ein alter Tisch|einen alten Tisch|einem alten Tisch|eines alten Tisches"),
        ("a", "lamp", False, "eine alte Lampe|eine alte Lampe|einer alten Lampe|einer alten Lampe"),
        ("a", "house", False, "ein altes Haus|ein altes Haus|einem alten Haus|eines alten Hauses"),
        ("a", "car", True, "alte Autos|alte Autos|alten Autos|alter Autos"),
        ("no", "boy", True, "keine alten Jungen|keine alten Jungen|keinen alten Jungen|keiner alten Jungen"),
        ("our", "lion", False, "unser alter Löwe|unseren alten Löwen|unserem alten Löwen|unseres alten Löwen"),
        ("this", "girl", False, "dieses alte Mädchen|dieses alte Mädchen|diesem alten Mädchen"
         "|dieses alten Mädchens"),
    ],
)  # fmt: skip
def test_noun_phrase_in_all_cases(determiner: str, lemma: str, plural: bool, cases: str) -> None:
    phrase = noun_phrase(determiner, noun(lemma), adjective("old"), plural)
    assert "|".join(phrase.german) == cases


@pytest.mark.parametrize(
    ("lemma", "cases"),
    [
        ("wine", "kalter Wein|kalten Wein|kaltem Wein|kalten Weines"),
        ("milk", "kalte Milch|kalte Milch|kalter Milch|kalter Milch"),
        ("water", "kaltes Wasser|kaltes Wasser|kaltem Wasser|kalten Wassers"),
    ],
)
def test_strong_adjectives_without_article(lemma: str, cases: str) -> None:
    phrase = noun_phrase("a", noun(lemma), adjective("cold"))
    assert "|".join(phrase.german) == cases
    assert phrase.english == f"cold {lemma}"


@pytest.mark.parametrize(
    ("lemma", "form"), [("dark", "dunkle"), ("expensive", "teure"), ("high", "hohe"), ("tired", "müde")]
)
def test_adjective_stems_that_change(lemma: str, form: str) -> None:
    assert german.inflected(adjective(lemma).german, "e") == form


@pytest.mark.parametrize(
    ("lemma", "comparative", "superlative"),
    [
        ("old", "älter", "ältest"), ("big", "größer", "größt"), ("good", "besser", "best"),
        ("expensive", "teurer", "teuerst"), ("short", "kürzer", "kürzest"), ("nice", "netter", "nettest"),
        ("practical", "praktischer", "praktischst"), ("high", "höher", "höchst"), ("small", "kleiner", "kleinst"),
    ],
)  # fmt: skip
def test_german_comparison(lemma: str, comparative: str, superlative: str) -> None:
    assert adjective(lemma).german_comparative == comparative
    assert german.superlative_stem(adjective(lemma)) == superlative


@pytest.mark.parametrize(
    ("lemma", "present", "past", "participle"),
    [
        ("lesen", "lese liest liest lesen", "las lasen", "gelesen"),
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten", "arbeitete arbeiteten", "gearbeitet"),
        ("zeichnen", "zeichne zeichnest zeichnet zeichnen", "zeichnete zeichneten", "gezeichnet"),
        ("lernen", "lerne lernst lernt lernen", "lernte lernten", "gelernt"),
        ("kommen", "komme kommst kommt kommen", "kam kamen", "gekommen"),
        ("lächeln", "lächle lächelst lächelt lächeln", "lächelte lächelten", "gelächelt"),
        ("einladen", "lade lädst lädt laden", "lud luden", "eingeladen"),
        ("anrufen", "rufe rufst ruft rufen", "rief riefen", "angerufen"),
        ("reparieren", "repariere reparierst repariert reparieren", "reparierte reparierten", "repariert"),
        ("besuchen", "besuche besuchst besucht besuchen", "besuchte besuchten", "besucht"),
        ("sich vorbereiten", "bereite bereitest bereitet bereiten", "bereitete bereiteten", "vorbereitet"),
        ("wissen", "weiß weißt weiß wissen", "wusste wussten", "gewusst"),
        ("reisen", "reise reist reist reisen", "reiste reisten", "gereist"),
        ("gießen", "gieße gießt gießt gießen", "goss gossen", "gegossen"),
    ],
)
def test_german_verb_forms(lemma: str, present: str, past: str, participle: str) -> None:
    entry = verb(lemma)
    assert " ".join(german.present(entry, person) for person in (0, 1, 2, 3)) == present
    assert f"{german.preterite(entry, 2)} {german.preterite(entry, 5)}" == past
    assert german.participle(entry) == participle


@pytest.mark.parametrize(
    ("lemma", "form"),
    [("lesen", "lies"), ("warten", "warte"), ("fahren", "fahr"), ("öffnen", "öffne"), ("geben", "gib")],
)
def test_german_imperative(lemma: str, form: str) -> None:
    assert german.imperative(verb(lemma)) == form


def test_zu_infinitive_goes_inside_a_separable_verb() -> None:
    assert german.zu_infinitive(verb("anrufen")) == "anzurufen"
    assert german.zu_infinitive(verb("besuchen")) == "zu besuchen"


@pytest.mark.parametrize(
    ("preposition", "phrase", "expected"),
    [
        ("in", "dem alten Haus", "im alten Haus"), ("in", "das Kino", "ins Kino"), ("zu", "der Schule", "zur Schule"),
        ("zu", "dem See", "zum See"), ("an", "dem Fluss", "am Fluss"), ("von", "dem Schloss", "vom Schloss"),
        ("bei", "dem Arzt", "beim Arzt"), ("in", "der Stadt", "in der Stadt"), ("auf", "das Bett", "auf das Bett"),
        ("in", "den Wald", "in den Wald"),
    ],
)  # fmt: skip
def test_contractions(preposition: str, phrase: str, expected: str) -> None:
    assert german.contracted(preposition, phrase) == expected


def test_genitive_of_the_owner() -> None:
    owner = noun_phrase("my", noun("father"))
    assert owned(noun_phrase("the", noun("car")), owner).german[0] == "das Auto meines Vaters"
    neighbours = noun_phrase("our", noun("neighbour"), plural=True)
    assert owned(noun_phrase("the", noun("car")), neighbours).english == "our neighbours' car"


# English forms


@pytest.mark.parametrize(
    ("words", "expected"),
    [("apple", "an apple"), ("old man", "an old man"), ("pear", "a pear"), ("useful list", "a useful list"),
     ("honest man", "an honest man"), ("hour", "an hour"), ("house", "a house")],
)  # fmt: skip
def test_a_or_an(words: str, expected: str) -> None:
    assert english.indefinite(words) == expected


@pytest.mark.parametrize(
    ("lemma", "third", "past", "participle", "gerund"),
    [
        ("try", "tries", "tried", "tried", "trying"), ("catch", "catches", "caught", "caught", "catching"),
        ("play", "plays", "played", "played", "playing"), ("wash", "washes", "washed", "washed", "washing"),
        ("go", "goes", "went", "gone", "going"), ("travel", "travels", "travelled", "travelled", "travelling"),
        ("plan", "plans", "planned", "planned", "planning"),
        ("lie", "lies", "lay", "lain", "lying"), ("begin", "begins", "began", "begun", "beginning"),
        ("visit", "visits", "visited", "visited", "visiting"), ("pay for", "pays", "paid", "paid", "paying"),
        ("write", "writes", "wrote", "written", "writing"), ("open", "opens", "opened", "opened", "opening"),
        ("flee", "flees", "fled", "fled", "fleeing"), ("have", "has", "had", "had", "having"),
    ],
)  # fmt: skip
def test_english_verb_forms(lemma: str, third: str, past: str, participle: str, gerund: str) -> None:
    entry = next(entry for entry in VERBS if entry.english == lemma)
    assert (english.third_person(entry), english.past(entry)) == (third, past)
    assert (english.participle(entry), english.gerund(entry)) == (participle, gerund)


@pytest.mark.parametrize(
    ("lemma", "expected"),
    [("city", "cities"), ("boy", "boys"), ("box", "boxes"), ("child", "children"), ("knife", "knives")],
)
def test_english_plural(lemma: str, expected: str) -> None:
    assert english.plural(lemma) == expected


@pytest.mark.parametrize(
    ("lemma", "comparative", "superlative"),
    [("big", "bigger", "biggest"), ("good", "better", "best"), ("nice", "nicer", "nicest"),
     ("happy", "happier", "happiest"), ("expensive", "more expensive", "most expensive")],
)  # fmt: skip
def test_english_comparison(lemma: str, comparative: str, superlative: str) -> None:
    assert english.comparative(adjective(lemma)) == comparative
    assert english.superlative(adjective(lemma)) == superlative


# Clauses


@pytest.mark.parametrize(
    ("tense", "negation", "said", "main", "last"),
    [
        ("present", "", "she calls him", "sie ruft ihn an", "sie ihn anruft"),
        ("perfect", "nicht", "she has not called him", "sie hat ihn nicht angerufen", "sie ihn nicht angerufen hat"),
        ("future", "", "she will call him", "sie wird ihn anrufen", "sie ihn anrufen wird"),
        ("want", "nicht", "she does not want to call him", "sie will ihn nicht anrufen", "sie ihn nicht anrufen will"),
        ("can", "nicht", "she cannot call him", "sie kann ihn nicht anrufen", "sie ihn nicht anrufen kann"),
        ("progressive", "", "she is calling him", "sie ruft ihn gerade an", "sie ihn gerade anruft"),
        ("like", "", "she likes to call him", "sie ruft ihn gern an", "sie ihn gern anruft"),
    ],
)  # fmt: skip
def test_separable_verb_in_every_position(tense: str, negation: str, said: str, main: str, last: str) -> None:
    clause = Clause(SHE, verb("anrufen"), tense, (Part("object pronoun", "him", "ihn"),), negation)
    assert english_statement(clause) == said
    assert german_main(clause) == main
    assert german_verb_last(clause) == last


def test_fronted_adverb_inverts_and_the_reflexive_precedes_a_noun() -> None:
    today = Part("time", "today", "heute")
    rested = Clause(noun_phrase("the", noun("man")), verb("sich ausruhen"), "past", (today,), front="time")
    assert german_main(rested) == "heute ruhte sich der Mann aus"
    rested = Clause(WE, verb("sich ausruhen"), "past", (today,), front="time")
    assert german_main(rested) == "heute ruhten wir uns aus"


# The corpus


def test_lexicon_and_patterns_are_large_enough() -> None:
    entries = [(entry.english, entry.german) for entry in chain(NOUNS, VERBS, ADJECTIVES, ADVERBS)]
    assert len(set(entries)) >= 400
    names = [pattern.name for pattern in all_patterns()]
    assert len(names) == len(set(names)) >= 150


def test_sizes_and_shape(splits: Splits) -> None:
    assert [len(split) for split in splits] == [50_000, 1_000, 1_000]
    for found in chain(*splits):
        for text in (found.sentence.source, found.sentence.target):
            words = text.split(" ")
            assert 3 <= len(words) <= 14, text
            assert text[0].isupper() and text[-1] in ".?!", text
            assert "" not in words and ",." not in text, text
    mean = sum(len(found.sentence.source.split()) for found in splits[0]) / len(splits[0])
    assert 6.5 <= mean <= 9.5


def test_distinct_without_names_and_numbers(splits: Splits) -> None:
    assert skeleton("On the 3rd of May Anna paid 12 euros.") == skeleton("On the 21st of June Eva paid 9 euros.")
    assert skeleton("Er kam um halb vier nach Berlin.") == skeleton("Er kam um zwei Uhr nach Dublin.")
    assert skeleton("He came late.") != skeleton("He came soon.")
    train = [skeleton(found.sentence.source) for found in splits[0]]
    assert len(set(train)) == len(train)


def test_dev_and_test_are_new_on_both_sides(splits: Splits) -> None:
    train, dev, test = ([found.sentence for found in split] for split in splits)
    for new, old in ((dev, train), (test, train), (test, dev)):
        assert {s.source for s in new}.isdisjoint(s.source for s in old)
        assert {s.target for s in new}.isdisjoint(s.target for s in old)


def test_pattern_and_verb_combinations_are_held_out(splits: Splits) -> None:
    train, dev, test = ({(f.sentence.pattern, f.sentence.verb) for f in split} for split in splits)
    assert train.isdisjoint(dev) and train.isdisjoint(test) and dev.isdisjoint(test)
    assert len(dev) > 100 and len(test) > 100
    assert {name for name, _ in train} == {pattern.name for pattern in all_patterns()}
    assert {lemma for _, lemma in dev | test} <= {lemma for _, lemma in train}


def test_every_content_word_of_dev_and_test_is_in_train(splits: Splits) -> None:
    train, dev, test = ({entry for found in split for entry in found.entries} for split in splits)
    assert dev | test <= train
    assert train >= {*NOUNS, *VERBS, *ADJECTIVES, *ADVERBS}


def test_words_are_spread_evenly(splits: Splits) -> None:
    train = splits[0]
    for language in ("english", "german"):
        counts = Counter(word for f in train for word in {getattr(entry, language) for entry in f.entries})
        # The copula is an auxiliary, not a content word.
        shares = {word: n / len(train) for word, n in counts.items() if word not in ("be", "sein")}
        assert max(shares.values()) <= 0.05, max(shares, key=lambda word: shares[word])
        assert min(counts.values()) >= 100, min(counts, key=lambda word: counts[word])


def test_no_surface_word_hides_from_the_lemma_counts(splits: Splits) -> None:
    """Words that patterns write themselves are function words; every other frequent word is counted above."""
    counts = Counter(word.strip(".,?!").lower() for f in splits[0] for word in set(f.sentence.source.split()))
    frequent = {word for word, n in counts.items() if n > 0.05 * len(splits[0])}
    assert frequent <= set(FUNCTION_WORDS.split())


def test_english_determines_german(splits: Splits) -> None:
    """Also among sentences that the corpus would drop as too alike."""
    translations: dict[str, str] = {f.sentence.source: f.sentence.target for f in chain(*splits)}
    draw = Draw(7)
    for _ in range(60):
        for pattern in all_patterns():
            found = draft(draw, pattern, draw.rarest(pattern.verbs)).sentence
            assert translations.setdefault(found.source, found.target) == found.target, found


def test_same_seed_same_sentences() -> None:
    first = phrasebook(seed=3, num_train=2_000, num_dev=50, num_test=50)
    assert first == phrasebook(seed=3, num_train=2_000, num_dev=50, num_test=50)
    assert first != phrasebook(seed=4, num_train=2_000, num_dev=50, num_test=50)
    assert [len(first.train), len(first.dev), len(first.test)] == [2_000, 50, 50]
    combinations = {(s.pattern, s.verb) for s in first.train}
    assert combinations.isdisjoint((s.pattern, s.verb) for s in (*first.dev, *first.test))


def test_a_small_corpus_keeps_its_promises_too() -> None:
    train, dev, test = draft_splits(5, 100, 20, 20)
    known = {entry for found in train for entry in found.entries}
    assert all(known.issuperset(found.entries) for found in (*dev, *test))
    assert len(known) < len(NOUNS) + len(VERBS), "small enough for the promise to be hard to keep"


@pytest.mark.parametrize("lemma", ["lesen", "schneiden", "anziehen"])
def test_a_past_that_equals_the_present_never_stands_alone(lemma: str) -> None:
    """They read could be lesen or lasen, so the subject is a he or a she."""
    patterns = {pattern.name: pattern for pattern in all_patterns()}
    draw = Draw(2)
    for _ in range(100):
        now = draft(draw, patterns["object-present"], verb(lemma)).sentence
        assert english.third_person(verb(lemma)) in now.source.split()
        then = draft(draw, patterns["object-past"], verb(lemma)).sentence
        assert german.preterite(verb(lemma), 2) in then.target.split()
        assert not then.source.startswith(("I ", "You "))


def _row(sentence: Sentence) -> str:
    return f"{sentence.pattern}\t{sentence.source}\t{sentence.target}"


def test_golden_sentences() -> None:
    golden = GOLDEN.read_text(encoding="utf-8").splitlines()
    assert len(golden) >= 200
    assert [_row(sentence) for sentence in sample_per_pattern(seed=1)] == golden


if __name__ == "__main__":
    GOLDEN.write_text("".join(_row(s) + "\n" for s in sample_per_pattern(seed=1)), encoding="utf-8")
