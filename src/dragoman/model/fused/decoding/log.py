"""What a search on a GPU writes down at every step, and how translations are read out of it afterwards. numpy alone.

Shape letters: T steps, B sentences, K beam, M translations. A step follows K of the candidates of every sentence, and
closes those of the best K that end. Row k of step t is what the k-th beam holds after that step.
"""

import numpy as np
from numpy.typing import NDArray

from dragoman.model.found import Found, SearchOptions

# Of a row: the row before that it goes on from, and its new word. Of the k-th candidate: whether it is closed now, the
# row before that it goes on from, its word, and its score, the bits of an fp32 number.
FIELDS = PARENT, WORD, CLOSES, ORIGIN, ENDING, SCORE = range(6)

Words = NDArray[np.int32]


def read_log(log: Words, num_sentences: int, eos_id: int, options: SearchOptions) -> list[list[Found]]:
    """The best translations of every sentence, best first, from (T, FIELDS, B, K)."""
    steps, sentences, beams = np.nonzero(log[:, CLOSES, :num_sentences])
    closed = np.ascontiguousarray(log[steps, :, sentences, beams])
    ends = closed[:, ENDING] == eos_id
    lengths = steps + 1  # EOS counts, as in CTranslate2
    scores = closed[:, SCORE].copy().view(np.float32).astype(np.float64) / lengths**options.length_penalty
    chosen = _best(scores, sentences, options.num_best)
    words = _trace(log, steps[chosen], sentences[chosen], closed[chosen, ORIGIN])
    found: list[list[Found]] = [[] for _ in range(num_sentences)]
    for place, history in zip(chosen.tolist(), words.tolist(), strict=True):
        ids = history[: steps[place]]
        ending = [] if ends[place] else [int(closed[place, ENDING])]
        found[sentences[place]].append(Found(ids + ending, float(scores[place])))
    return found


def _best(scores: NDArray[np.float64], sentences: NDArray[np.int64], num_best: int) -> NDArray[np.int64]:
    """Places of the best few of every sentence, best first; of equals the one that was closed first."""
    order = np.lexsort((np.arange(len(scores)), -scores, sentences))
    _, firsts, counts = np.unique(sentences[order], return_index=True, return_counts=True)
    ranks = np.arange(len(order)) - np.repeat(firsts, counts)
    return order[ranks < num_best]


def _trace(log: Words, steps: NDArray[np.int64], sentences: NDArray[np.int64], rows: Words) -> Words:
    """(M, T): the words of rows and of what they go on from, all translations at once, the last word first."""
    longest = int(steps.max(initial=0))
    words = np.zeros((len(steps), longest), dtype=np.int32)
    for step in reversed(range(longest)):
        under_way = np.flatnonzero(step < steps)
        entries = log[step, :, sentences[under_way], rows[under_way]]
        words[under_way, step] = entries[:, WORD]
        rows[under_way] = entries[:, PARENT]
    return words
