"""English sentences of the lengths that people translate, for `serve --bench` without a file."""

SENTENCES = tuple(
    """
Good morning.
Where is the station?
The house is small.
I would like a cup of coffee, please.
We will meet again next week.
The train to Berlin leaves at half past eight.
She wrote a letter to her brother yesterday.
Could you tell me how much this costs?
The museum is closed on Mondays.
He has been working for this company for twelve years.
Please send me the report before the end of the month.
The weather was so bad that we decided to stay at home.
The committee will discuss the proposal at its next meeting in November.
Many people in the city travel to work by bicycle, even in winter.
The price of electricity has risen by more than ten percent since last year.
If you have any questions, do not hesitate to write to us.
The new bridge, which cost forty million euros, was opened by the mayor on Saturday.
Scientists have found that children who read every day do better at school.
It is important that all members of the team know what they are expected to do.
The government said on Tuesday that it would not change the law before the elections.
After the war the family moved to a small village in the mountains, where they opened a bakery.
Although the results of the study are promising, further work is needed before they can be used in hospitals.
The company, which was founded in the nineteenth century, now has offices in more than thirty countries.
Visitors are asked to leave their bags at the entrance and to switch off their telephones before they go in.
In its answer to the question, the Commission said that it was aware of the problem and would propose a solution soon.
The report says that most of the accidents could have been avoided if the drivers had kept to the speed limit.
When the storm was over, the farmers went out into the fields to see how much of the harvest could still be saved.
The main reason for the delay, according to the operator, was a fault in the signals between the two stations.
Nobody knows exactly how many people live in the area, because the last count was made more than twenty years ago.
We believe that a good translation does not only carry the meaning of every word, but also the tone of the whole text.
The old library, with its long wooden tables and green lamps, is one of the few places where the city is really quiet.
There are still a number of open questions, and it will take some time until we can say what has to be done.
""".strip().splitlines()
)
