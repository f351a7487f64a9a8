"""Adjectives, adverbs, names and numbers of the phrasebook.

Names and numerals are not content words: sentences that differ only in them count as one.
"""

from dataclasses import dataclass
from typing import Final

# Row: English | German | tags of the nouns it fits | German comparative stem if irregular | English comparative.
# English comparative: "-" none, "more" analytic, "er" regular, else the form itself.
_ADJECTIVES: Final = """
old|alt|person kin animal thing furniture site vehicle clothes plant|älter|er
young|jung|person animal|jünger|er
big|groß|animal thing furniture site vehicle plant room outside peak|größer|er
small|klein|animal thing furniture site vehicle plant room outside minor fruit||er
new|neu|thing furniture vehicle clothes doc site room stop||er
beautiful|schön|thing clothes site plant animal room outside peak road||more
ugly|hässlich|thing clothes furniture site stop||er
expensive|teuer|thing clothes vehicle furniture food drink|teurer|more
cheap|billig|thing clothes vehicle furniture food drink||er
heavy|schwer|thing furniture||er
light|leicht|furniture clothes||er
long|lang|doc show road|länger|er
short|kurz|doc show laundry|kürzer|er
interesting|interessant|doc show idea sight||more
boring|langweilig|doc show||more
important|wichtig|doc idea||more
funny|lustig|doc show person kin||er
sad|traurig|person show doc state kin||er
famous|berühmt|person sight||more
friendly|freundlich|person kin||er
strict|streng|person kin||er
clever|klug|person animal kin|klüger|er
lazy|faul|person animal kin||er
brave|mutig|person kin||er
polite|höflich|person kin||more
shy|schüchtern|person kin||-
curious|neugierig|person animal kin||more
strong|stark|person animal state kin|stärker|er
rich|reich|person kin||er
poor|arm|person kin|ärmer|er
nice|nett|person kin||er
patient|geduldig|person kin||more
tired|müde|person animal state kin||more
hungry|hungrig|person animal state kin||er
thirsty|durstig|animal state||er
sick|krank|person animal state kin|kränker|-
happy|glücklich|person state kin||er
nervous|nervös|person state kin||more
angry|wütend|person animal state kin||-
surprised|überrascht|person kin||-
satisfied|zufrieden|person state kin||-
proud|stolz|person kin||er
fresh|frisch|food drink||er
cold|kalt|drink hot|kälter|er
hot|heiß|hot||er
sweet|süß|fruit baked drink||er
delicious|lecker|food drink||-
good|gut|drink doc idea show|besser|better
bad|schlecht|idea show||worse
fast|schnell|vehicle||er
slow|langsam|vehicle||er
safe|sicher|vehicle||er
comfortable|bequem|seat clothes||more
modern|modern|furniture vehicle building stop room||more
quiet|ruhig|site outside room road||er
dark|dunkel|room furniture road|dunkler|er
bright|hell|room||er
clean|sauber|clothes thing room||er
dirty|schmutzig|clothes thing vehicle room stop||er
empty|leer|room inside filled stop||-
wet|nass|clothes||-
dry|trocken|clothes||-
warm|warm|clothes room|wärmer|er
elegant|elegant|clothes furniture||more
red|rot|thing clothes furniture vehicle plant||-
blue|blau|thing clothes furniture vehicle||-
green|grün|thing clothes furniture vehicle||-
white|weiß|thing clothes furniture animal vehicle plant||-
black|schwarz|thing clothes furniture animal vehicle||-
brown|braun|clothes furniture animal||-
yellow|gelb|plant clothes vehicle||-
practical|praktisch|thing clothes furniture||more
valuable|wertvoll|thing furniture||more
difficult|schwierig|solved study asked||more
simple|einfach|solved study asked||er
strange|seltsam|idea doc show||er
wild|wild|wild =goat =pig =horse =donkey =duck =goose =cat||-
high|hoch|peak =shelf =bridge|höher|er
wrong|falsch|=answer =word =sentence||-
stupid|dumm|animal told asked =idea =plan =mistake|dümmer|er
modest|bescheiden|person kin||more
serious|ernst|person kin show||more
honest|ehrlich|person kin||more
dangerous|gefährlich|wild vehicle||more
loud|laut|vehicle stop||er
healthy|gesund|food animal|gesünder|er
"""

# Row: English | German | kind. Kinds say where the adverb stands and which tenses it goes with.
_ADVERBS: Final = """
always|immer|often
often|oft|often
never|nie|often never
sometimes|manchmal|often
usually|normalerweise|often
rarely|selten|often
today|heute|now
tonight|heute Abend|now
this afternoon|heute Nachmittag|now
tomorrow|morgen|later
soon|bald|later
next week|nächste Woche|later
the day after tomorrow|übermorgen|later
yesterday|gestern|past
last week|letzte Woche|past
last night|gestern Abend|past
a few days ago|vor einigen Tagen|past
the day before yesterday|vorgestern|past
every day|jeden Tag|habit
in the morning|am Morgen|habit
in the evening|am Abend|habit
at the weekend|am Wochenende|habit
in summer|im Sommer|habit
in winter|im Winter|habit
quickly|schnell|manner
slowly|langsam|manner
carefully|vorsichtig|manner
quietly|leise|manner still
alone|allein|manner still
immediately|sofort|manner
together|zusammen|together
unfortunately|leider|comment
fortunately|glücklicherweise|comment
perhaps|vielleicht|comment
of course|natürlich|comment
suddenly|plötzlich|sudden
finally|endlich|sudden
probably|wahrscheinlich|likely
certainly|bestimmt|likely
already|schon|done already
just|eben|just
twice|zweimal|times
for a long time|lange|long
for hours|stundenlang|long
the whole day|den ganzen Tag|long
right now|gerade|inner
gladly|gern|inner
formerly|früher|inner
"""


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    english: str
    german: str
    kinds: frozenset[str]
    german_comparative: str
    english_comparative: str


@dataclass(frozen=True, eq=False, slots=True)
class Adverb:
    english: str
    german: str
    kinds: str


@dataclass(frozen=True, eq=False, slots=True)
class Numeral:
    english: str
    german: str
    value: int


def _adjective(row: str) -> Adjective:
    english, german, kinds, german_comparative, english_comparative = row.split("|")
    return Adjective(
        english, german, frozenset(kinds.split()), german_comparative or german + "er", english_comparative
    )


ADJECTIVES: Final = tuple(_adjective(row) for row in _ADJECTIVES.strip().splitlines())
ADVERBS: Final = tuple(Adverb(*row.split("|")) for row in _ADVERBS.strip().splitlines())

WOMEN: Final = ("Anna", "Maria", "Julia", "Laura", "Sophie", "Emma", "Lena", "Clara", "Eva", "Nina")
MEN: Final = ("Peter", "Paul", "Martin", "Daniel", "David", "Robert", "Simon", "Oliver", "Felix", "Anton")
CITIES: Final = (
    *(
        "Berlin",
        "Hamburg",
        "London",
        "Paris",
        "Madrid",
        "Amsterdam",
        "Dresden",
        "Leipzig",
        "Oxford",
        "Boston",
    ),
    *("Dublin", "Toronto", "Stockholm", "Bremen", "Chicago", "Budapest"),
)
_MONTHS: Final = (
    "January Januar|February Februar|March März|April April|May Mai|June Juni|July Juli|August August"
    "|September September|October Oktober|November November|December Dezember"
)
MONTHS: Final = tuple(tuple(pair.split()) for pair in _MONTHS.split("|"))
_DAYS: Final = (
    "Monday Montag|Tuesday Dienstag|Wednesday Mittwoch|Thursday Donnerstag|Friday Freitag"
    "|Saturday Samstag|Sunday Sonntag"
)
DAYS: Final = tuple(tuple(pair.split()) for pair in _DAYS.split("|"))
_NUMERALS: Final = (
    "two zwei|three drei|four vier|five fünf|six sechs|seven sieben|eight acht|nine neun|ten zehn"
    "|eleven elf|twelve zwölf"
)
NUMERALS: Final = tuple(
    Numeral(pair.split()[0], pair.split()[1], value) for value, pair in enumerate(_NUMERALS.split("|"), start=2)
)


def adjectives(kinds: frozenset[str]) -> tuple[Adjective, ...]:
    """Those that fit one of the kinds, which may be a noun's tags."""
    return tuple(adjective for adjective in ADJECTIVES if adjective.kinds & kinds)


def adverbs(kind: str) -> tuple[Adverb, ...]:
    found = tuple(adverb for adverb in ADVERBS if kind in adverb.kinds.split())
    assert found, f"no adverb of kind {kind}"
    return found
