"""Sentence patterns of two clauses: subordinate clauses, coordination, infinitives.

Row: name | English template | German template | clause A | clause B, on two lines.
Templates: see `patterns.render`.
"""

from typing import Final

JOINED: Final = """
that-object | {A} that {B}. | {A}, dass {B<}.
    | that present | object perfect subj=clear
that-past | {A} that {B}. | {A}, dass {B<}.
    | that past subj=third | alone pluperfect subj=clear
that-future | {A} that {B}. | {A}, dass {B<}.
    | that present | goal future subj=clear
that-self | {A} that {B}. | {A}, dass {B<}.
    | that past subj=clear only=report | object could not obj=the subj=A
that-state | {A} that {B}. | {A}, dass {B<}.
    | that present | predicate present subj=clear
whether-object | {A} whether {B}. | {A}, ob {B<}.
    | whether present | object perfect subj=clear
whether-goal | {A} whether {B}. | {A}, ob {B<}.
    | whether present | goal future subj=clear
because-state | {A} because {B}. | {A}, weil {B<}.
    | alone present subj=clear only=mood | copula present subj=A
because-object | {A} because {B}. | {A}, weil {B<}.
    | object past obj=the subj=clear free | alone hadto subj=A only=duty
because-goal | {A} because {B}. | {A}, weil {B<}.
    | goal past subj=clear | object wanted subj=A obj=a only=errand
because-tired | {A} because {B}. | {A}, weil {B<}.
    | predicate past subj=clear | alone pluperfect subj=A only=tiring
because-dative | {A} because {B}. | {A}, weil {B<}.
    | dative present subj=clear obj=the | copula present subj=A
although-object | {A} although {B}. | {A}, obwohl {B<}.
    | object past obj=the subj=clear | copula past subj=A
although-first | Although {B}, {A}. | Obwohl {B<}, {A?}.
    | alone past subj=A free | copula past subj=clear lead
when-first | When {B}, {A}. | Wenn {B<}, {A?}.
    | object present subj=A only=comfort | copula present subj=clear lead
when-past | When {B}, {A}. | Als {B<}, {A?}.
    | alone past subj=A only=reaction | goal past subj=clear lead
if-future | If {B}, {A}. | Wenn {B<}, {A?}.
    | goal future subj=A | object present subj=clear lead obj=the
if-can | If {B}, {A}. | Wenn {B<}, {A?}.
    | object can subj=A | copula present subj=clear lead
before-object | {A} before {B}. | {A}, bevor {B<}.
    | object past subj=clear obj=the free | goal past subj=A
before-alone | {A} before {B}. | {A}, bevor {B<}.
    | alone past subj=clear free | object past subj=A obj=the free
after-first | After {B}, {A}. | Nachdem {B<}, {A?}.
    | goal past subj=A | object pluperfect subj=clear lead obj=the
while-object | While {B}, {A}. | Während {B<}, {A?}.
    | object past obj=the subj=third free | alone past subj=clear lead free
as-soon-as | {A} as soon as {B}. | {A}, sobald {B<}.
    | object future subj=clear obj=the free | alone present subj=A only=moment
and-object | {A}, and {B}. | {A}, und {B}.
    | object past obj=the subj=third | alone past subj=third
but-object | {A}, but {B}. | {A}, aber {B}.
    | object past obj=the subj=clear | object past subj=A not obj=no
but-want | {A}, but {B}. | {A}, aber {B}.
    | alone want subj=clear | object must subj=A
or-question | {A?} or {B!}? | {A?} oder {B_}?
    | alone want subj=clear | object want subj=A obj=a
in-order-to | {A} in order to {B!}. | {A}, um {B!}.
    | goal past subj=clear | object present subj=A obj=a only=errand
without | {A} without {B~}. | {A}, ohne {B!}.
    | goal past subj=clear | object present free subj=A obj=the
instead-of | {A} instead of {B~}. | {A}, anstatt {B!}.
    | alone past subj=clear free | object present free subj=A obj=the
try-object | {A} to {B!}. | {A}, {B!}.
    | infinitive present | object present free subj=A
try-past | {A} to {B!}. | {A}, {B!}.
    | infinitive past subj=third | object present free subj=A
try-perfect | {A} to {B!}. | {A}, {B!}.
    | infinitive perfect | object present free subj=A obj=the
try-goal | {A} to {B!}. | {A}, {B!}.
    | infinitive past subj=third | goal present free subj=A
try-prep | {A} to {B!}. | {A}, {B!}.
    | infinitive past subj=third | prep present free subj=A
try-dative | {A} to {B!}. | {A}, {B!}.
    | infinitive perfect | dative present free subj=A
try-put | {A} to {B!}. | {A}, {B!}.
    | infinitive past subj=third | put present free subj=A obj=the
know-where | {A} where {B}. | {A}, wo {B<}.
    | whether present | alone present subj=clear place=none
know-why | {A} why {B}. | {A}, warum {B<}.
    | whether present | object perfect subj=clear obj=the
know-who | {A} {B}. | {A}, {B<}.
    | whether present | object perfect subj=who obj=the
"""
