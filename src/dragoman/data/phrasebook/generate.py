"""The embedded corpus: English-German sentence pairs made by a grammar, split so that dev and test are new.

Dev and test use combinations of pattern and main verb that training never shows, made of words that it does.
Same seed and sizes, same sentences, on every machine. No torch, no files.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dragoman.data.phrasebook.draw import Draw, Entry
from dragoman.data.phrasebook.lexicon_verbs import VERBS, Verb
from dragoman.data.phrasebook.lexicon_words import CITIES, DAYS, MEN, MONTHS, NUMERALS, WOMEN
from dragoman.data.phrasebook.patterns import Pattern, all_patterns

_GIVE_UP_AFTER: Final = 80  # sentences in a row that a pattern could not make new
_MOST_WORDS: Final = 14
_FEWEST_VERBS: Final = 4  # a pattern with fewer keeps them all in training
_VERBS_PER_HELD_OUT: Final = 12


@dataclass(frozen=True)
class Sentence:
    source: str  # English
    target: str  # German
    pattern: str  # name of the sentence pattern
    verb: str  # English lemma of the main verb


@dataclass(frozen=True)
class Phrasebook:
    train: list[Sentence]
    dev: list[Sentence]
    test: list[Sentence]


@dataclass(frozen=True)
class Draft:
    """A sentence with the lexicon entries in it."""

    sentence: Sentence
    entries: tuple[Entry, ...]


Choices = dict[Pattern, tuple[Verb, ...]]


def phrasebook(seed: int = 1, num_train: int = 50_000, num_dev: int = 1_000, num_test: int = 1_000) -> Phrasebook:
    train, dev, test = draft_splits(seed, num_train, num_dev, num_test)
    return Phrasebook(*([draft.sentence for draft in split] for split in (train, dev, test)))


def draft_splits(
    seed: int, num_train: int, num_dev: int, num_test: int
) -> tuple[list[Draft], list[Draft], list[Draft]]:
    draw = Draw(seed)
    train_choices, dev_choices, test_choices = _hold_out(draw)
    seen: set[str] = set()
    train = list(_new_drafts(draw, train_choices, num_train, seen, known=None))
    known = {entry for draft in train for entry in draft.entries}
    dev = list(_new_drafts(draw, dev_choices, num_dev, seen, known))
    test = list(_new_drafts(draw, test_choices, num_test, seen, known))
    return train, dev, test


def sample_per_pattern(seed: int = 1, per_pattern: int = 1) -> list[Sentence]:
    """Some sentences of every pattern, in the order of the patterns; a new pattern changes no other's."""
    sentences: list[Sentence] = []
    for pattern in all_patterns():
        draw = Draw(f"{seed} {pattern.name}")
        wanted = len(sentences) + per_pattern
        while len(sentences) < wanted:
            found = draft(draw, pattern, draw.rarest(pattern.verbs))
            if _fits(found.sentence):
                draw.keep()
                sentences.append(found.sentence)
    return sentences


def draft(draw: Draw, pattern: Pattern, verb: Verb) -> Draft:
    draw.begin()
    source, target = pattern.make(draw, verb)
    sentence = Sentence(_tidied(source), _tidied(target), pattern.name, verb.english)
    return Draft(sentence, tuple(draw.used))


def _fits(sentence: Sentence) -> bool:
    return max(sentence.source.count(" "), sentence.target.count(" ")) < _MOST_WORDS


def _tidied(text: str) -> str:
    """Capital first letter; a comma that closes a clause gives way to what follows it."""
    text = _DOUBLE_STOP.sub(r"\1", text)
    return text[0].upper() + text[1:]


_DOUBLE_STOP: Final = re.compile(r",([,.?!])")


def _hold_out(draw: Draw) -> tuple[Choices, Choices, Choices]:
    """The main verbs each pattern may use in train, dev and test: disjoint, and none lost to training."""
    patterns_left = {verb: sum(verb in pattern.verbs for pattern in all_patterns()) for verb in VERBS}
    train: Choices = {}
    dev: Choices = {}
    test: Choices = {}
    for pattern in all_patterns():
        train[pattern] = pattern.verbs
        if len(pattern.verbs) < _FEWEST_VERBS:
            continue
        number = 1 + len(pattern.verbs) // _VERBS_PER_HELD_OUT
        for choices in (dev, test):
            rare = [verb for verb in train[pattern] if patterns_left[verb] > 2]
            held = tuple(dict.fromkeys(draw.one_of(rare) for _ in range(number))) if rare else ()
            for verb in held:
                patterns_left[verb] -= 1
            # A verb is known by its English lemma: "know" is kennen in one frame and wissen in another.
            lemmas = {verb.english for verb in held}
            train[pattern] = tuple(verb for verb in train[pattern] if verb.english not in lemmas)
            if held:
                choices[pattern] = held
    return train, dev, test


def _new_drafts(draw: Draw, choices: Choices, number: int, seen: set[str], known: set[Entry] | None) -> Iterator[Draft]:
    """That many drafts, each new on both sides even when names and numbers are disregarded.

    known: the entries that may occur; None allows all.
    """
    patterns = list(choices)
    failures = dict.fromkeys(patterns, 0)
    made = 0
    while made < number:
        assert patterns, f"the grammar is exhausted after {made} of {number} sentences"
        for pattern in list(patterns):
            if made == number:
                return
            found = draft(draw, pattern, draw.rarest(choices[pattern]))
            keys = skeleton(found.sentence.source), skeleton(found.sentence.target)
            if _fits(found.sentence) and seen.isdisjoint(keys) and (known is None or known.issuperset(found.entries)):
                seen.update(keys)
                draw.keep()
                failures[pattern] = 0
                made += 1
                yield found
            else:
                failures[pattern] += 1
                if failures[pattern] == _GIVE_UP_AFTER:
                    patterns.remove(pattern)


def _pattern_of_names() -> re.Pattern[str]:
    numbers = "|".join(f"{numeral.english}|{numeral.german}" for numeral in NUMERALS)
    names = "|".join((*WOMEN, *MEN, *CITIES, *(word for pair in (*MONTHS, *DAYS) for word in pair)))
    clock = f"half past (?:{numbers})|a quarter (?:past|to) (?:{numbers})|(?:{numbers}) o'clock"
    uhr = f"halb (?:{numbers})|Viertel (?:nach|vor) (?:{numbers})|(?:{numbers}) Uhr"
    return re.compile(rf"\b(?:{clock}|{uhr}|{numbers}|{names}|\d+(?:st|nd|rd|th)?)\b")


_NAMES: Final = _pattern_of_names()


def skeleton(text: str) -> str:
    """The text with names, numbers, dates and times replaced: what counts for being distinct."""
    return _NAMES.sub("#", text)
