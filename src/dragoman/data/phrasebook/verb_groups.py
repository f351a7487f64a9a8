"""Groups of verbs that make sense in one pattern and not in another, by what one does them for.

Only English lemmas; a pattern says only=NAME (see `frames.Spec`).
"""

from typing import Final

_TABLE: Final = """
errand: buy, find, look for, meet, visit, photograph, observe, read, borrow, rent, sell, call, order, pick up, learn
acquire: buy, find, rent, borrow, use, order, see, wear, draw, meet, write
choose: buy, sell, visit, read, borrow, rent, photograph, use, order, invite, wear, meet
moment: come back, wake up, get up, arrive, calm down, sit down
sudden: cry, laugh, tremble, cough, disappear, wake up, get up, fall asleep, turn around, sit down, come back
comfort: eat, order, buy, bake, cook, read, drink, look for, call, visit, write, paint
reaction: get lost, catch a cold, cry, smile, sing, tremble, freeze, laugh, whisper, turn around, cough
report: say, write, claim, fear, notice
mood: sleep, rest, lie down, cry, laugh, smile, tremble, sing, dance, sit down, hurry, get up
lasting: sleep, work, wait, dance, play, celebrate, sing, rest, cook, fish, cry
forbidden: wait for, argue with, laugh at, talk about, complain about, think of, play with, talk to
calmly: wait for, talk to, play with, dream of, talk about
tiring: work, dance, get lost, freeze, wait, celebrate, cry, catch a cold, fall asleep
duty: work, go shopping, tidy up, wash up, hurry, wait, cook, get up
trips: fly, travel
whereto: go, drive, run, hike, rush
condition: be, look, feel, become
"""


def _parse(row: str) -> tuple[str, frozenset[str]]:
    name, _, lemmas = row.partition(": ")
    return name, frozenset(lemmas.split(", "))


VERB_GROUPS: Final = dict(_parse(row) for row in _TABLE.strip().splitlines())
