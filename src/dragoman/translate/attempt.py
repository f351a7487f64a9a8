"""Translating a sentence so that what must stay as it is does: at first as it stands, then with more and more care."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.translate.keeping import EMOJI, NUMBER, SEPARATED_NUMBER, lost_spans
from dragoman.translate.parts import Hypothesis, Part, Splitter

Best = list[Hypothesis]

HIDE_SEPARATED, HIDE_NUMBERS, LEAVE_OUT = range(3)  # the last one cannot fail


@dataclass(frozen=True)
class Attempt:
    """A sentence, how carefully it is to be translated, and what the attempts before lost of it."""

    sentence: str
    prefix: str = ""
    care: int = HIDE_SEPARATED
    lost: Sequence[str] = ()  # by the attempt that lost least

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def is_first(self) -> bool:
        return self.care == HIDE_SEPARATED

    def parts(self, splitter: Splitter) -> list[Part]:
        hidden = (SEPARATED_NUMBER if self.is_first else NUMBER, EMOJI)
        return splitter.parts(self.sentence, hidden, self.lost if self.care == LEAVE_OUT else ())

    def outcome(self, found: Best, num_best: int = 1) -> "Best | Attempt":
        """Translations of which the first lost nothing, or the next attempt."""
        if self.care == LEAVE_OUT:
            return found[:num_best]
        lost = []
        for number, each in enumerate(found):
            lost.append(lost_spans(self.sentence, each.text))
            if not lost[number]:
                return [each, *found[:number], *found[number + 1 :]][:num_best]
        is_worse = bool(self.lost) and len(lost[0]) >= len(self.lost)
        return replace(self, care=self.care + 1, lost=self.lost if is_worse else lost[0])
