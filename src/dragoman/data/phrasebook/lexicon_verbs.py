"""Verbs of the phrasebook: principal parts in both languages and the frames each verb fits.

Knows nothing about how forms are built (`english`, `german`) or how clauses are ordered (`clause`).
"""

from dataclasses import dataclass
from typing import Final

# Row: English [past participle] | German [present stem, preterite, participle] | frames
# English "pick+up": the particle follows a pronoun (picks him up). German "ab+holen": separable prefix.
# German "sich ...": reflexive. A star after the participle (or a weak infinitive): perfect with sein.
# A dash keeps the regular form. A frame is name=tags of its object; prep frames name preposition and case.
# The mark "to" beside give: the recipient comes last in English (explains the rule to him).
_TABLE: Final = """
read read read|lesen lies las gelesen|object=doc
write wrote written|schreiben - schrieb geschrieben|object=written give=mail
translate|übersetzen - - übersetzt|object=written
print|drucken|object=doc
sign|unterschreiben - unterschrieb unterschrieben|object=signed
eat ate eaten|essen iss aß gegessen|object=food animal=fruit
drink drank drunk|trinken - trank getrunken|object=drink
cook|kochen|object=warm alone=home
bake|backen - backte gebacken|object=baked
cut cut cut|schneiden - schnitt geschnitten|object=cut
peel|schälen|object=peel
order|bestellen|object=food,drink
taste|probieren|object=food,drink
buy bought bought|kaufen|object=food,drink,clothes,thing,vehicle give=clothes,lent
sell sold sold|verkaufen|object=vehicle,thing,furniture
repair|reparieren|object=vehicle,device,furniture
clean|putzen|object=scrubbed
wash|waschen wäsch wusch gewaschen|object=fruit,dish,laundry
paint|malen|object=art,plant,sight
draw drew drawn|zeichnen|object=animal,plant,vehicle
wear wore worn|tragen träg trug getragen|object=clothes
put+on put put|an+ziehen - zog gezogen|object=worn
take+off took taken|aus+ziehen - zog gezogen|object=worn
try+on|an+probieren|object=worn
find found found|finden - fand gefunden|object=small,doc,clothes
lose lost lost|verlieren - verlor verloren|object=small
look for|suchen|object=small,clothes,doc
need|brauchen|object=tool,vehicle,furniture,clothes
use|benutzen|object=tool,device,vehicle
carry|tragen träg trug getragen|object=heavy,furniture
lift|heben - hob gehoben|object=heavy
see saw seen|sehen sieh sah gesehen|object=animal,vehicle,sight,person
hear heard heard|hören|object=sung,animal,vehicle that
visit|besuchen|object=sight,person,kin
meet met met|treffen triff traf getroffen|object=person,kin
know knew known|kennen - kannte gekannt|object=known,sung,person
love|lieben|object=pet,sung,kin
call|an+rufen - rief gerufen|object=person,kin
invite|ein+laden läd lud geladen|object=person,kin
greet|begrüßen|object=person
praise|loben|object=person
disturb|stören|object=person
pick+up|ab+holen|object=person,kin
wake+up woke woken|wecken|object=person,kin
save|retten|object=person,pet
admire|bewundern|object=person,art,sight
photograph|fotografieren|object=sight,animal,plant
feed fed fed|füttern|object=pet,farm
stroke|streicheln|object=pet
observe|beobachten|object=wild,person
catch caught caught|fangen fäng fing gefangen|object=prey
park|parken|object=parked
open|öffnen|object=openable
close|schließen - schloss geschlossen|object=openable
lock|ab+schließen - schloss geschlossen|object=lockable
break broke broken|zerbrechen zerbrich zerbrach zerbrochen|object=dish
fill|füllen|object=filled
unpack|aus+packen|object=packed
pack|ein+packen|object=clothes,lent
hide hid hidden|verstecken|object=small,mail
build built built|bauen|object=building,built
plant|pflanzen|object=plant
water|gießen - goss gegossen|object=plant
pick|pflücken|object=picked,fruit
forget forgot forgotten|vergessen vergiss vergaß vergessen|object=small,clothes,study infinitive
understand understood understood|verstehen - verstand verstanden|object=idea,study
learn|lernen|object=learned,sung,=word,=rule,=poem
repeat|wiederholen - - wiederholt|object=study,asked
solve|lösen|object=solved
correct|korrigieren|object=study,written
answer|beantworten|object=asked,mail
discuss|besprechen besprich besprach besprochen|object=discussed
sing sang sung|singen - sang gesungen|object=sung alone=home,fun,building,outside
win won won|gewinnen - gewann gewonnen|object==game,parked
miss|verpassen|object=public,event
take took taken|nehmen nimm nahm genommen|object=public,small
rent|mieten|object=rented
borrow|aus+leihen - lieh geliehen|object=lent
pay for paid paid|bezahlen|object=food,drink,clothes
decorate|schmücken|object=home,building
turn on|ein+schalten|object=device
turn off|aus+schalten|object=device
throw away threw thrown|weg+werfen wirf warf geworfen|object=doc,clothes
look at|an+sehen sieh sah gesehen|object=art,sight,clothes
describe|beschreiben - beschrieb beschrieben|object=sight,art,person
burn|verbrennen - verbrannte verbrannt|object=doc
give gave given|geben gib gab gegeben|give=thing,doc,food
show showed shown|zeigen|give=thing,doc,sight
send sent sent|schicken|give=mail,thing
bring brought brought|bringen - brachte gebracht|give=food,drink,thing
lend lent lent|leihen - lieh geliehen|give=lent
explain|erklären|give=idea to
tell told told|erzählen|give=told
recommend|empfehlen empfiehl empfahl empfohlen|give=doc,fun to
offer|an+bieten - bot geboten|give=food,drink
promise|versprechen versprich versprach versprochen|give=thing,clothes infinitive
help|helfen hilf half geholfen|dative
thank|danken|dative
follow|folgen *|dative
trust|vertrauen|dative
believe|glauben|dative that
answer|antworten|dative
listen to|zu+hören|dative
congratulate|gratulieren|dative
forgive forgave forgiven|verzeihen - verzieh verziehen|dative
contradict|widersprechen widersprich widersprach widersprochen|dative
wait for|warten|prep/auf/A=person,public,mail
think of thought thought|denken - dachte gedacht|prep/an/A=person,kin,event
dream of|träumen|prep/von/D=parked,sight,=house,=journey
talk about|sprechen sprich sprach gesprochen|prep/über/A=idea,show
laugh at|lachen|prep/über/A==joke,=story,=film
look after|auf+passen|prep/auf/A=person,pet
ask for|bitten - bat gebeten|prep/um/A=drink,lent
report on|berichten|prep/über/A=show,sight
talk to|reden|prep/mit/D=person,kin
play with|spielen|prep/mit/D=play,pet
dance with|tanzen|prep/mit/D=person
argue with|streiten - stritt gestritten|prep/mit/D=person,kin
take part in took taken|teil+nehmen nimm nahm genommen|prep/an/D=event
be interested in was been|sich interessieren|prep/für/A=sight,learned,art,plant
remember|sich erinnern|prep/an/A=person,event,idea
look forward to|sich freuen|prep/auf/A=event
concentrate on|sich konzentrieren|prep/auf/A=study,solved
prepare for|sich vor+bereiten|prep/auf/A=test
complain about|sich beschweren|prep/über/A=building,public,food
say goodbye to said said|sich verabschieden|prep/von/D=person,kin
get used to got got|sich gewöhnen|prep/an/A=home,person,learned
apologise to|sich entschuldigen|prep/bei/D=person,kin
sleep slept slept|schlafen schläf schlief geschlafen|alone=animal,home,=hotel,=park,=beach
work|arbeiten|alone=building,indoors,home,=farm,=restaurant
laugh|lachen|alone
cry|weinen|alone=home,stop,building
dance|tanzen|alone=fun,=kitchen,=street,=garden,=beach
smile|lächeln|alone
wait|warten|alone=stop,fun,building,=street,=bridge
play|spielen|alone=animal,home,outside
smoke|rauchen|alone=home,stop,=street,=park
cough|husten|alone
snore|schnarchen|alone=home
whisper|flüstern|alone=building,fun,indoors
tremble|zittern|alone=animal
celebrate|feiern|alone=fun,=garden,=castle,=beach,=house
fish|angeln|alone=wet
freeze froze frozen|frieren - fror gefroren|alone=animal
arrive|an+kommen - kam gekommen *|alone=stop,=village,=town,=island,=farm,=beach
get up got got|auf+stehen - stand gestanden *|alone=animal
fall asleep fell fallen|ein+schlafen schläf schlief geschlafen *|alone=animal
wake up woke woken|auf+wachen *|alone=animal
disappear|verschwinden - verschwand verschwunden *|alone=animal,outside,building
go out went gone|aus+gehen - ging gegangen *|alone
come back came come|zurück+kommen - kam gekommen *|alone=animal
have breakfast had had|frühstücken|alone=home,fun
go shopping went gone|ein+kaufen|alone
watch television|fern+sehen sieh sah gesehen|alone=room,=hotel
tidy up|auf+räumen|alone=home
wash up|ab+waschen wäsch wusch gewaschen|alone==kitchen,=restaurant,=café,=hotel
rest|sich aus+ruhen|alone=animal,home,outside,=hotel
hurry|sich beeilen|alone
sit down sat sat|sich hin+setzen|alone
lie down lay lain|sich hin+legen|alone=animal
get bored got got|sich langweilen|alone=building,fun,indoors,=village
get lost got got|sich verlaufen verläuf verlief verlaufen|alone=outside,building
turn around|sich um+drehen|alone=animal
calm down|sich beruhigen|alone=animal
catch a cold caught caught|sich erkälten|alone
go went gone|gehen - ging gegangen *|goal=room,building,fun,sight,stop,outside,indoors,=supermarket
drive drove driven|fahren fähr fuhr gefahren *|goal=building,fun,sight,stop,outside
run ran run|laufen läuf lief gelaufen *|goal=room,building,fun,stop,outside,indoors,=supermarket
come came come|kommen - kam gekommen *|goal=building,fun,sight,stop
return|zurück+kehren *|goal=building,fun,sight,indoors
hike|wandern *|goal=peak,=castle,=forest,=lake,=river,=village,=town,=farm,=beach
flee fled fled|fliehen - floh geflohen *|goal=outside,building,peak
rush|eilen *|goal=building,indoors,stop,fun,room
fly flew flown|fliegen - flog geflogen *|city
travel|reisen *|city
move|ziehen - zog gezogen *|city
lay laid laid|legen|put=doc,clothes,laid
place|stellen|put=stood
throw threw thrown|werfen wirf warf geworfen|put=small
push|schieben - schob geschoben|put=heavy
lie lay lain|liegen - lag gelegen|lie=doc,laid,small
stand stood stood|stehen - stand gestanden|lie=stood
be was been|sein - war gewesen *|predicate copula
become became become|werden wird wurde geworden *|predicate become
stay|bleiben - blieb geblieben *|predicate
look|aus+sehen sieh sah gesehen|predicate
feel felt felt|sich fühlen|predicate
say said said|sagen|that
know knew known|wissen weiß wusste gewusst|that
hope|hoffen|that infinitive
think thought thought|denken - dachte gedacht|that
notice|bemerken|that
claim|behaupten|that
fear|befürchten|that
write wrote written|schreiben - schrieb geschrieben|that
discover|entdecken|that
ask|fragen|whether
wonder|sich fragen|whether
check|prüfen|whether
find out found found|heraus+finden - fand gefunden|whether
try|versuchen|infinitive
decide|beschließen - beschloss beschlossen|infinitive
plan|planen|infinitive
begin began begun|an+fangen fäng fing gefangen|infinitive
refuse|sich weigern|infinitive
have had had|haben - hatte gehabt|have
cost cost cost|kosten|cost
weigh|wiegen - wog gewogen|weigh
rain|regnen|weather
snow|schneien|weather
start|beginnen - begann begonnen|event
end|enden|event
take place took taken|statt+finden - fand gefunden|event
last|dauern|last
belong to|gehören|belong
like|gefallen gefäll gefiel gefallen|please
bloom|blühen|grow
grow grew grown|wachsen wächs wuchs gewachsen *|grow
"""


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    english: str  # lemma, with its particle or preposition: "pick up"
    head: str  # the word that inflects: "pick"
    tail: str  # what follows it: "up", "for"
    particle: bool  # the tail follows a pronoun object
    english_past: str  # of the head; empty: regular
    english_participle: str
    prefix: str  # separable prefix
    root: str  # German infinitive without prefix and sich
    reflexive: bool
    german_stem: str  # of du and er; empty: regular
    german_past: str
    german_participle: str  # without the separable prefix
    sein: bool
    frames: dict[str, str]  # frame -> tags of its object
    state: bool  # a lasting one: no perfect
    free: bool  # something one does on purpose: has a progressive, an imperative, goes with modals

    @property
    def german(self) -> str:
        return ("sich " if self.reflexive else "") + self.prefix + self.root


def _english(field: str) -> tuple[str, str, bool, str, str]:
    """Head, tail, particle, past and participle. Irregular rows end in two extra words."""
    words = field.split()
    irregular = words[0].split("+")[0] in _IRREGULAR
    past, participle = (words[-2], words[-1]) if irregular else ("", "")
    words = words[:-2] if irregular else words
    head, _, particle = words[0].partition("+")
    return head, particle or " ".join(words[1:]), bool(particle), past, participle


_IRREGULAR_ROWS: Final = (
    "read write eat drink cut buy sell draw wear put take find lose see hear meet know feed catch break "
    "hide wake steal build forget understand sing win throw give show send bring lend tell forgive think "
    "say fall get be cost grow sleep freeze go come have sit lie drive run flee fly lay pay stand become "
    "feel begin"
)
_IRREGULAR: Final = frozenset(_IRREGULAR_ROWS.split(" "))

# Separated by slashes: one does not order somebody to know or to snore.
_NOT_FREE_ROWS: Final = (
    "need/hear/see/know/love/lose/find/miss/forget/break/understand/win/steal/burn/trust/believe/"
    "be interested in/remember/get used to/look forward to/cry/cough/snore/tremble/"
    "freeze/arrive/fall asleep/wake up/disappear/get bored/get lost/catch a cold/flee/lie/stand/become/"
    "look/feel/notice/fear/dream of/hope/contradict/be/threaten/admire/refuse/wonder/claim/discover/"
    "think/have/cost/weigh/belong to/be called"
)
_NOT_FREE: Final = frozenset(_NOT_FREE_ROWS.split("/"))

# Lasting states: no perfect with "already" or "twice".
_STATES_ROWS: Final = "need/know/love/trust/be interested in/look forward to/like"
_STATES: Final = frozenset(_STATES_ROWS.split("/"))


def _frames(field: str) -> dict[str, str]:
    pairs = (frame.partition("=") for frame in field.split())
    return {name: tags for name, _, tags in pairs}


def _parse(row: str) -> Verb:
    english, german, frames = row.split("|")
    head, tail, particle, past, participle = _english(english)
    forms = german.split()
    sein = "*" in forms
    reflexive = forms[0] == "sich"
    forms = [form for form in forms if form not in ("*", "sich")]
    prefix, _, root = forms[0].rpartition("+")
    stem, german_past, german_participle = (form if form != "-" else "" for form in (*forms[1:], "-", "-", "-")[:3])
    return Verb(
        f"{head} {tail}".strip(),
        head,
        tail,
        particle,
        past,
        participle,
        prefix,
        root,
        reflexive,
        stem,
        german_past,
        german_participle,
        sein,
        _frames(frames),
        f"{head} {tail}".strip() in _STATES,
        f"{head} {tail}".strip() not in _NOT_FREE,
    )


VERBS: Final[tuple[Verb, ...]] = tuple(_parse(row) for row in _TABLE.strip().splitlines())


def verbs(frame: str) -> tuple[Verb, ...]:
    """All verbs with this frame; "prep" finds every preposition."""
    found = tuple(verb for verb in VERBS if any(name.split("/")[0] == frame for name in verb.frames))
    assert found, f"no verb has the frame {frame}"
    return found
