"""Sentence patterns of one clause, one per line.

Row: name | English template | German template | specification of clause A (see `frames.Spec`).
Templates: see `patterns.render`. A missing pair of templates is a plain statement.
"""

from typing import Final

SIMPLE: Final = """
object-present           | {A}. | {A}. | object present
object-progressive       | {A}. | {A}. | object progressive
object-past              | {A}. | {A}. | object past subj=third
object-perfect           | {A}. | {A}. | object perfect obj=a
object-already           | {A}. | {A}. | object perfect done=already obj=the
object-twice             | {A}. | {A}. | object perfect times=times obj=the free
object-had               | {A}. | {A}. | object pluperfect done=already obj=the subj=third
object-future            | {A}. | {A}. | object future time=later
object-probably          | {A}. | {A}. | object future often=likely obj=the
object-habit             | {A}. | {A}. | object present time=habit free obj=plural
object-often             | {A}. | {A}. | object present often=often free obj=plural
object-often-past        | {A}. | {A}. | object past often=often subj=third free obj=plural
object-own               | {A}. | {A}. | object past obj=own subj=third
object-number            | {A}. | {A}. | object past obj=number subj=third
object-this              | {A}. | {A}. | object perfect obj=this
object-manner            | {A}. | {A}. | object past obj=the manner=manner free subj=third
object-every             | {A}. | {A}. | object present subj=every free obj=a
object-habit-first       | {A}. | {A}. | object present time=habit front=time free
object-past-first        | {A}. | {A}. | object past time=past front=time subj=third
object-today-first       | {A}. | {A}. | object future time=now front=time
object-day-first         | {A}. | {A}. | object past time=day front=time subj=third
object-date-first        | {A}. | {A}. | object past time=date front=time subj=third
object-comment           | {A}. | {A}. | object past comment=comment front=comment subj=third
object-comment-perfect   | {A}. | {A}. | object perfect comment=comment front=comment
object-sudden            | {A}. | {A}. | object past comment=sudden front=comment subj=third free
object-not               | {A}. | {A}. | object present not obj=the
object-not-past          | {A}. | {A}. | object past not obj=the subj=third
object-no                | {A}. | {A}. | object present not obj=no
object-no-past           | {A}. | {A}. | object past not obj=no subj=third
object-not-yet           | {A} yet. | {A}. | object perfect not=yet obj=the
object-no-longer         | {A} any more. | {A}. | object present not=longer obj=the
object-not-future        | {A}. | {A}. | object future not obj=this
object-pronoun           | {A}. | {A}. | object present obj=pronoun
object-pronoun-past      | {A}. | {A}. | object past obj=pronoun time=past subj=third
object-pronoun-perfect   | {A}. | {A}. | object perfect obj=pronoun done=already
object-pronoun-first     | {A}. | {A}. | object past obj=pronoun time=past front=time subj=third
object-pronoun-not       | {A}. | {A}. | object perfect obj=pronoun not
object-can               | {A}. | {A}. | object can
object-cannot            | {A}. | {A}. | object can not obj=the
object-must              | {A}. | {A}. | object must time=now
object-should            | {A}. | {A}. | object should obj=this
object-should-not        | {A}. | {A}. | object should not obj=this
object-would-like        | {A}. | {A}. | object would obj=a
object-could             | {A}. | {A}. | object could not obj=the
object-want              | {A}. | {A}. | object want
object-wanted            | {A}. | {A}. | object wanted time=past
object-had-to            | {A}. | {A}. | object hadto
object-allowed           | {A}. | {A}. | object may obj=the
object-like              | {A}. | {A}. | object like obj=plural
object-used-to           | {A}. | {A}. | object usedto obj=plural subj=third
object-question          | {A?}? | {A?}? | object present
object-question-did      | {A?}? | {A?}? | object did
object-question-already  | {A?}? | {A?}? | object perfect done=already obj=the
object-question-can      | {A?}? | {A?}? | object can
object-question-will     | {A?}? | {A?}? | object future obj=this free
object-what              | What {A?}? | Was {A?}? | object present obj=none thing
object-what-did          | What {A?}? | Was {A?}? | object did obj=none thing time=past
object-what-want         | What {A?}? | Was {A?}? | object want obj=none thing
object-whom              | Whom {A?}? | Wen {A?}? | object present obj=none whom
object-whom-did          | Whom {A?}? | Wen {A?}? | object did obj=none whom time=past
object-who               | {A}? | {A}? | object present subj=who
object-who-did           | {A}? | {A}? | object did subj=who
object-why               | Why {A?}? | Warum {A?}? | object did
object-why-progressive   | Why {A?}? | Warum {A?}? | object progressive
object-when              | When {A?}? | Wann {A?}? | object future free
object-how-often         | How often {A?}? | Wie oft {A?}? | object present free obj=the
object-which             | {A?}? | {A}? | object did obj=which front=object
object-topic             | {A}. | {A}. | object perfect obj=this front=object done=already subj=pronoun
object-please            | Please {A!}. | Bitte {A.}. | object present subj=you free
object-do-not            | Do not {A!}! | {A.}! | object present subj=you free not obj=the
object-let-us            | Let us {A!}. | Lass uns {A_}. | object present subj=we free
object-just              | {A}. | {A}. | object perfect often=just
object-manner-must       | {A}. | {A}. | object must obj=the manner=manner
prep-long                | {A}. | {A}. | prep past long=long subj=third free
prep-manner              | {A}. | {A}. | prep past manner=still subj=third only=calmly
alone-long-past          | {A}. | {A}. | alone past long=long subj=third only=lasting
alone-manner-progressive | {A}. | {A}. | alone progressive place manner=still
alone-probably           | {A}. | {A}. | alone future often=likely place
goal-probably            | {A}. | {A}. | goal future often=likely
goal-manner-perfect      | {A}. | {A}. | goal perfect manner=manner
dative-probably          | {A}. | {A}. | dative future often=likely
passive-past             | {A}. | {A}. | passive passive-past time=past
passive-past-first       | {A}. | {A}. | passive passive-past time=past front=time
passive-perfect          | {A}. | {A}. | passive passive-perfect done=already
passive-future           | {A}. | {A}. | passive passive-future time=later
passive-must             | {A}. | {A}. | passive passive-must time=later
passive-cannot           | {A}. | {A}. | passive passive-can not
passive-question         | {A?}? | {A?}? | passive passive-past time=past
passive-when             | When {A?}? | Wann {A?}? | passive passive-past
dative-present           | {A}. | {A}. | dative present
dative-past              | {A}. | {A}. | dative past subj=third time=past
dative-perfect           | {A}. | {A}. | dative perfect
dative-future            | {A}. | {A}. | dative future time=later
dative-often             | {A}. | {A}. | dative present often=often
dative-not               | {A}. | {A}. | dative past not subj=third
dative-pronoun           | {A}. | {A}. | dative perfect obj=pronoun
dative-first             | {A}. | {A}. | dative past time=past front=time subj=third
dative-comment           | {A}. | {A}. | dative perfect comment=comment front=comment
dative-want              | {A}. | {A}. | dative want
dative-question          | {A?}? | {A?}? | dative did
dative-whom              | Whom {A?}? | Wem {A?}? | dative present obj=none
dative-who               | {A}? | {A}? | dative did subj=who
dative-please            | Please {A!}. | Bitte {A.}. | dative present subj=you free
give-present             | {A}. | {A}. | give present
give-past                | {A}. | {A}. | give past subj=third
give-perfect             | {A}. | {A}. | give perfect often=just obj=the
give-future              | {A}. | {A}. | give future time=later obj=a
give-past-first          | {A}. | {A}. | give past time=past front=time subj=third
give-pronoun             | {A}. | {A}. | give past to=pronoun subj=third
give-no                  | {A}. | {A}. | give present not obj=no
give-want                | {A}. | {A}. | give want
give-should              | {A}. | {A}. | give should obj=this
give-question            | {A?}? | {A?}? | give did to=pronoun
give-what                | What {A?}? | Was {A?}? | give did obj=none
give-who                 | {A}? | {A}? | give did subj=who to=pronoun
give-please              | Please {A!}. | Bitte {A.}. | give present subj=you to=pronoun
prep-present             | {A}. | {A}. | prep present
prep-progressive         | {A}. | {A}. | prep progressive
prep-past                | {A}. | {A}. | prep past subj=third
prep-perfect             | {A}. | {A}. | prep perfect
prep-future              | {A}. | {A}. | prep future time=later
prep-often               | {A}. | {A}. | prep present often=often
prep-not                 | {A}. | {A}. | prep present not obj=the
prep-not-perfect         | {A}. | {A}. | prep perfect not obj=the
prep-first               | {A}. | {A}. | prep past time=past front=time subj=third
prep-comment             | {A}. | {A}. | prep past comment=comment front=comment subj=third
prep-must                | {A}. | {A}. | prep must time=now
prep-want                | {A}. | {A}. | prep want
prep-question            | {A?}? | {A?}? | prep present
prep-question-did        | {A?}? | {A?}? | prep did
prep-who                 | {A}? | {A}? | prep present subj=who
prep-why                 | Why {A?}? | Warum {A?}? | prep did
prep-do-not              | Do not {A!}! | {A.}! | prep present subj=you only=forbidden not obj=the
alone-place              | {A}. | {A}. | alone present place
alone-progressive        | {A}. | {A}. | alone progressive place
alone-past               | {A}. | {A}. | alone past place time=past subj=third
alone-place-first        | {A}. | {A}. | alone past place front=place subj=third
alone-habit-first        | {A}. | {A}. | alone present place time=habit front=time
alone-long               | {A}. | {A}. | alone perfect place long=long only=lasting
alone-never              | {A}. | {A}. | alone perfect often=never place
alone-future             | {A}. | {A}. | alone future place time=now
alone-not                | {A}. | {A}. | alone present not place
alone-no-longer          | {A} any more. | {A}. | alone present not=longer place
alone-sudden             | {A}. | {A}. | alone past comment=sudden front=comment subj=third only=sudden
alone-manner             | {A}. | {A}. | alone past place manner=still free subj=third
alone-together           | {A}. | {A}. | alone present place manner=together free subj=group
alone-used-to            | {A}. | {A}. | alone usedto place subj=third
alone-want               | {A}. | {A}. | alone want place
alone-must               | {A}. | {A}. | alone must time=now
alone-clock              | {A}. | {A}. | alone past time=clock subj=third
alone-question           | {A?}? | {A?}? | alone did place
alone-where              | Where {A?}? | Wo {A?}? | alone progressive place=none
alone-who                | {A}? | {A}? | alone present subj=who place
alone-why                | Why {A?}? | Warum {A?}? | alone did time=past
goal-present             | {A}. | {A}. | goal present time=habit
goal-past                | {A}. | {A}. | goal past subj=third
goal-perfect             | {A}. | {A}. | goal perfect
goal-future              | {A}. | {A}. | goal future time=later
goal-often               | {A}. | {A}. | goal present often=often
goal-not                 | {A}. | {A}. | goal past not subj=third
goal-past-first          | {A}. | {A}. | goal past time=past front=time subj=third
goal-day-first           | {A}. | {A}. | goal future time=day front=time
goal-clock               | {A}. | {A}. | goal past time=clock subj=third
goal-manner              | {A}. | {A}. | goal past manner=manner subj=third
goal-must                | {A}. | {A}. | goal must time=now
goal-want                | {A}. | {A}. | goal want
goal-question            | {A?}? | {A?}? | goal did
goal-where               | Where {A?}? | Wohin {A?}? | goal progressive obj=none only=whereto
goal-let-us              | Let us {A!}. | Lass uns {A_}. | goal present subj=we free only=whereto
city-future              | {A}. | {A}. | city future time=later
city-date                | {A}. | {A}. | city past time=date front=time subj=third
city-often               | {A}. | {A}. | city present often=often only=trips
city-want                | {A}. | {A}. | city want time=later
put-past                 | {A}. | {A}. | put past subj=third
put-perfect              | {A}. | {A}. | put perfect obj=the
put-must                 | {A}. | {A}. | put must obj=the
put-first                | {A}. | {A}. | put past time=past front=time subj=third
put-question             | {A?}? | {A?}? | put did obj=the
put-please               | Please {A!}. | Bitte {A.}. | put present subj=you free obj=the
lie-present              | {A}. | {A}. | lie present
lie-past                 | {A}. | {A}. | lie past time=past
lie-not                  | {A}. | {A}. | lie present not
state-present            | {A}. | {A}. | predicate present
state-often              | {A}. | {A}. | predicate present often=often
state-past               | {A}. | {A}. | predicate past time=past subj=third only=condition
state-not                | {A}. | {A}. | predicate past not subj=third
state-question           | {A?}? | {A?}? | predicate present
"""
