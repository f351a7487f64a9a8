"""Nouns of the phrasebook: one row per lemma, with everything irregular about it.

Knows nothing about sentences; only what a noun is and which other words go with it.
"""

from dataclasses import dataclass
from typing import Final

# Row: English | German | gender | German plural | kind, then the tags that verbs select.
# Gender "w" is a masculine of the weak declension (der Junge, den Jungen). Plural "-" is a mass noun.
# The kind decides which adjectives fit. Places carry the relation one is "at" them with: in, on or at.
_TABLE: Final = """
man|Mann|m|Männer|person
woman|Frau|f|Frauen|person
child|Kind|n|Kinder|person minor
boy|Junge|w|Jungen|person minor
girl|Mädchen|n|Mädchen|person minor
teacher|Lehrer|m|Lehrer|person job
doctor|Arzt|m|Ärzte|person job
student|Student|w|Studenten|person
pupil|Schüler|m|Schüler|person
neighbour|Nachbar|w|Nachbarn|kin known-person
friend|Freund|m|Freunde|kin known-person
guest|Gast|m|Gäste|person
farmer|Bauer|w|Bauern|person job
baker|Bäcker|m|Bäcker|person job
cook|Koch|m|Köche|person job
policeman|Polizist|w|Polizisten|person job
judge|Richter|m|Richter|person job
lawyer|Anwalt|m|Anwälte|person job
painter|Maler|m|Maler|person job
writer|Schriftsteller|m|Schriftsteller|person job
singer|Sänger|m|Sänger|person job
actor|Schauspieler|m|Schauspieler|person job
engineer|Ingenieur|m|Ingenieure|person job
nurse|Krankenschwester|f|Krankenschwestern|person
waiter|Kellner|m|Kellner|person job
gardener|Gärtner|m|Gärtner|person job
pilot|Pilot|w|Piloten|person job
colleague|Kollege|w|Kollegen|kin known-person
tourist|Tourist|w|Touristen|person
thief|Dieb|m|Diebe|person
king|König|m|Könige|person
queen|Königin|f|Königinnen|person
soldier|Soldat|w|Soldaten|person
hunter|Jäger|m|Jäger|person
fisherman|Fischer|m|Fischer|person
mechanic|Mechaniker|m|Mechaniker|person job
journalist|Journalist|w|Journalisten|person job
lady|Dame|f|Damen|person
father|Vater|m|Väter|kin single
mother|Mutter|f|Mütter|kin single
brother|Bruder|m|Brüder|kin
sister|Schwester|f|Schwestern|kin
son|Sohn|m|Söhne|kin
daughter|Tochter|f|Töchter|kin
uncle|Onkel|m|Onkel|kin
aunt|Tante|f|Tanten|kin
grandfather|Großvater|m|Großväter|kin single
grandmother|Großmutter|f|Großmütter|kin single
dog|Hund|m|Hunde|animal pet
cat|Katze|f|Katzen|animal pet
horse|Pferd|n|Pferde|animal pet mount
cow|Kuh|f|Kühe|animal farm
pig|Schwein|n|Schweine|animal farm
bird|Vogel|m|Vögel|animal wild
mouse|Maus|f|Mäuse|animal prey
rabbit|Kaninchen|n|Kaninchen|animal pet prey
wolf|Wolf|m|Wölfe|animal wild
fox|Fuchs|m|Füchse|animal wild prey
bear|Bär|w|Bären|animal wild
lion|Löwe|w|Löwen|animal wild
monkey|Affe|w|Affen|animal wild
elephant|Elefant|w|Elefanten|animal wild
duck|Ente|f|Enten|animal farm prey
goose|Gans|f|Gänse|animal farm prey
goat|Ziege|f|Ziegen|animal farm
donkey|Esel|m|Esel|animal farm mount
apple|Apfel|m|Äpfel|food fruit peel cut
pear|Birne|f|Birnen|food fruit peel cut
banana|Banane|f|Bananen|food peel
orange|Orange|f|Orangen|food peel
cherry|Kirsche|f|Kirschen|food fruit
tomato|Tomate|f|Tomaten|food fruit cut
potato|Kartoffel|f|Kartoffeln|food peel warm hot
carrot|Karotte|f|Karotten|food peel cut
onion|Zwiebel|f|Zwiebeln|food peel cut
egg|Ei|n|Eier|food warm
sausage|Wurst|f|Würste|food cut
cake|Kuchen|m|Kuchen|food cut baked
biscuit|Keks|m|Kekse|food baked
soup|Suppe|f|Suppen|food warm hot
salad|Salat|m|Salate|food
bread|Brot|n|-|food cut baked
cheese|Käse|m|-|food cut
meat|Fleisch|n|-|food cut warm
rice|Reis|m|-|food warm
honey|Honig|m|-|food
milk|Milch|f|-|drink hot
water|Wasser|n|-|drink
coffee|Kaffee|m|-|drink hot
tea|Tee|m|-|drink hot
juice|Saft|m|-|drink
wine|Wein|m|-|drink
beer|Bier|n|-|drink
lemonade|Limonade|f|-|drink
book|Buch|n|Bücher|doc written study lent
letter|Brief|m|Briefe|doc written mail signed
newspaper|Zeitung|f|Zeitungen|doc
story|Geschichte|f|Geschichten|doc written told
poem|Gedicht|n|Gedichte|doc written
report|Bericht|m|Berichte|doc written
novel|Roman|m|Romane|doc written lent
message|Nachricht|f|Nachrichten|doc written mail
article|Artikel|m|Artikel|doc written
text|Text|m|Texte|doc written study
list|Liste|f|Listen|doc written
magazine|Zeitschrift|f|Zeitschriften|doc lent
postcard|Postkarte|f|Postkarten|doc written mail signed
contract|Vertrag|m|Verträge|doc signed
recipe|Rezept|n|Rezepte|doc written
coat|Mantel|m|Mäntel|clothes hung worn
jacket|Jacke|f|Jacken|clothes hung worn laundry
dress|Kleid|n|Kleider|clothes hung worn laundry
shirt|Hemd|n|Hemden|clothes worn laundry
hat|Hut|m|Hüte|clothes
shoe|Schuh|m|Schuhe|clothes worn scrubbed
glove|Handschuh|m|Handschuhe|clothes worn
skirt|Rock|m|Röcke|clothes worn laundry
blouse|Bluse|f|Blusen|clothes worn laundry
cap|Mütze|f|Mützen|clothes
boot|Stiefel|m|Stiefel|clothes worn scrubbed
sweater|Pullover|m|Pullover|clothes worn laundry
suit|Anzug|m|Anzüge|clothes worn
car|Auto|n|Autos|vehicle lent parked rented lockable
bus|Bus|m|Busse|vehicle public
train|Zug|m|Züge|vehicle public
bicycle|Fahrrad|n|Fahrräder|vehicle lent rented parked
ship|Schiff|n|Schiffe|vehicle built
plane|Flugzeug|n|Flugzeuge|vehicle public
boat|Boot|n|Boote|vehicle rented built
tram|Straßenbahn|f|Straßenbahnen|vehicle public
taxi|Taxi|n|Taxis|vehicle
lorry|Lastwagen|m|Lastwagen|vehicle parked
motorcycle|Motorrad|n|Motorräder|vehicle lent rented parked
lamp|Lampe|f|Lampen|thing device stood scrubbed
radio|Radio|n|Radios|thing device stood
computer|Computer|m|Computer|thing device
camera|Kamera|f|Kameras|thing device small lent
telephone|Telefon|n|Telefone|thing stood
clock|Uhr|f|Uhren|thing
cup|Tasse|f|Tassen|thing dish stood filled
plate|Teller|m|Teller|thing dish stood
glass|Glas|n|Gläser|thing dish stood filled
bottle|Flasche|f|Flaschen|thing stood openable filled
vase|Vase|f|Vasen|thing dish stood filled
knife|Messer|n|Messer|thing tool small
spoon|Löffel|m|Löffel|thing small
fork|Gabel|f|Gabeln|thing small
pot|Topf|m|Töpfe|thing stood filled
pan|Pfanne|f|Pfannen|thing stood tool
key|Schlüssel|m|Schlüssel|thing small
umbrella|Regenschirm|m|Regenschirme|thing lent tool
ball|Ball|m|Bälle|thing small play
doll|Puppe|f|Puppen|thing small play
present|Geschenk|n|Geschenke|thing openable packed
pencil|Bleistift|m|Bleistifte|thing small tool
candle|Kerze|f|Kerzen|thing small
blanket|Decke|f|Decken|thing laid
pillow|Kissen|n|Kissen|thing laid
hammer|Hammer|m|Hämmer|thing tool lent
saw|Säge|f|Sägen|thing tool lent
ladder|Leiter|f|Leitern|thing tool lent
bucket|Eimer|m|Eimer|thing heavy stood filled
basket|Korb|m|Körbe|thing heavy inside filled
box|Kiste|f|Kisten|thing heavy inside openable packed
bag|Tasche|f|Taschen|thing heavy inside packed
suitcase|Koffer|m|Koffer|thing heavy inside openable packed lent filled
picture|Bild|n|Bilder|thing hung art
mirror|Spiegel|m|Spiegel|thing hung scrubbed
ring|Ring|m|Ringe|thing small
coin|Münze|f|Münzen|thing small
stamp|Briefmarke|f|Briefmarken|thing small
guitar|Gitarre|f|Gitarren|thing lent
piano|Klavier|n|Klaviere|thing
violin|Geige|f|Geigen|thing lent
table|Tisch|m|Tische|furniture top
chair|Stuhl|m|Stühle|furniture top seat
bed|Bett|n|Betten|furniture top seat
sofa|Sofa|n|Sofas|furniture top seat
armchair|Sessel|m|Sessel|furniture top seat
desk|Schreibtisch|m|Schreibtische|furniture top
shelf|Regal|n|Regale|furniture top
cupboard|Schrank|m|Schränke|furniture inside openable lockable
carpet|Teppich|m|Teppiche|furniture top
door|Tür|f|Türen|furniture openable lockable
window|Fenster|n|Fenster|furniture openable scrubbed
house|Haus|n|Häuser|place in building home lockable zu
flat|Wohnung|f|Wohnungen|room place in home rented scrubbed
room|Zimmer|n|Zimmer|room place in home rented scrubbed
kitchen|Küche|f|Küchen|room place in home scrubbed
bathroom|Badezimmer|n|Badezimmer|room place in home scrubbed
cellar|Keller|m|Keller|room place in home
garden|Garten|m|Gärten|outside place in home
garage|Garage|f|Garagen|room place in home
office|Büro|n|Büros|room place in lockable indoors
school|Schule|f|Schulen|place in building zu
church|Kirche|f|Kirchen|place in building sight
hospital|Krankenhaus|n|Krankenhäuser|place in building
restaurant|Restaurant|n|Restaurants|place in fun
hotel|Hotel|n|Hotels|place in building fun zu
museum|Museum|n|Museen|place in sight
library|Bibliothek|f|Bibliotheken|place in building
supermarket|Supermarkt|m|Supermärkte|place in zu
park|Park|m|Parks|outside place in fun
forest|Wald|m|Wälder|outside place in
village|Dorf|n|Dörfer|outside place in sight
town|Stadt|f|Städte|outside place in sight
cinema|Kino|n|Kinos|place in fun
theatre|Theater|n|Theater|place in building fun
factory|Fabrik|f|Fabriken|place in building
bakery|Bäckerei|f|Bäckereien|place in zu indoors
café|Café|n|Cafés|place in fun
castle|Schloss|n|Schlösser|place in building sight zu
street|Straße|f|Straßen|road place on
market|Markt|m|Märkte|outside place at-on
farm|Bauernhof|m|Bauernhöfe|outside place on
bridge|Brücke|f|Brücken|outside place on built
island|Insel|f|Inseln|outside place on sight
station|Bahnhof|m|Bahnhöfe|stop place at
airport|Flughafen|m|Flughäfen|stop place at
beach|Strand|m|Strände|outside place at
river|Fluss|m|Flüsse|outside place at wet
lake|See|m|Seen|outside place at wet
bus stop|Haltestelle|f|Haltestellen|stop place at
problem|Problem|n|Probleme|idea solved discussed
question|Frage|f|Fragen|idea asked discussed
answer|Antwort|f|Antworten|idea known
idea|Idee|f|Ideen|idea discussed
plan|Plan|m|Pläne|idea discussed
mistake|Fehler|m|Fehler|idea
rule|Regel|f|Regeln|idea study known
secret|Geheimnis|n|Geheimnisse|idea told known
exercise|Aufgabe|f|Aufgaben|idea solved study
riddle|Rätsel|n|Rätsel|idea solved
word|Wort|n|Wörter|idea study
sentence|Satz|m|Sätze|idea study
joke|Witz|m|Witze|idea told
song|Lied|n|Lieder|idea sung
language|Sprache|f|Sprachen|idea learned
film|Film|m|Filme|show discussed liked
game|Spiel|n|Spiele|show liked
concert|Konzert|n|Konzerte|show event liked
exam|Prüfung|f|Prüfungen|show event test
meeting|Besprechung|f|Besprechungen|show event test
wedding|Hochzeit|f|Hochzeiten|show event
journey|Reise|f|Reisen|show event test
party|Feier|f|Feiern|show event liked
flower|Blume|f|Blumen|plant picked
rose|Rose|f|Rosen|plant picked
tree|Baum|m|Bäume|plant
bush|Strauch|m|Sträucher|plant
mountain|Berg|m|Berge|peak place on sight
tower|Turm|m|Türme|peak built art
"""


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    english: str
    german: str
    gender: str  # m, f, n
    plural: str  # empty: mass noun
    kind: str
    tags: frozenset[str]  # includes the kind
    weak: bool

    @property
    def sex(self) -> str:
        """m or f where English would say he or she, else empty (Kind and Mädchen are neuter in German)."""
        return self.gender if self.kind in ("person", "kin") and self.gender != "n" else ""


def _parse(row: str) -> Noun:
    english, german, gender, plural, tags = row.split("|")
    labels = tags.split()
    labels.append(f"={english}")  # a single noun can be selected by its lemma
    weak = gender == "w"
    if labels[0] in ("person", "kin") and gender != "n":
        labels.append("clear")  # he or she in English, er or sie in German
    if labels[0] == "place":
        labels.append("site")  # every place is tagged place; these are buildings and take their adjectives
    if labels[0] == "person" and "minor" not in labels:
        labels.append("adult")
    return Noun(english, german, "m" if weak else gender, plural.strip("-"), labels[0], frozenset(labels), weak)


NOUNS: Final[tuple[Noun, ...]] = tuple(_parse(row) for row in _TABLE.strip().splitlines())


def nouns(tags: str) -> tuple[Noun, ...]:
    """All nouns that carry one of the comma-separated tags."""
    wanted = frozenset(tags.split(","))
    found = tuple(noun for noun in NOUNS if noun.tags & wanted)
    assert found, f"no noun has any of the tags {tags}"
    return found
