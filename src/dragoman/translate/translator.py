"""`Translator`: sentences in, sentences out, in batches of similar length; the order is kept."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman.data.vocab import UNK_ID
from dragoman.model.found import Found, Sampling, SearchOptions
from dragoman.translate.alignment import align_words, words_of_pieces
from dragoman.translate.attempt import Attempt, Best
from dragoman.translate.engine import BATCH_TOKENS, Engine, open_engine
from dragoman.translate.parts import Hypothesis, Part, Splitter, copied, join

__all__ = ["Hypothesis", "Sampling", "Translator"]

Batch = list[tuple[int, int]]  # (sentence, part of it), the longest first


@dataclass(frozen=True)
class _Wanted:
    """What was asked of a call, with the model's defaults filled in."""

    options: SearchOptions
    batch_tokens: int | None
    alignments: bool
    replace_unknowns: bool


class Translator:
    """A loaded model: a run, a checkpoint or an export. Making one takes about a second; translating reuses it."""

    def __init__(self, model: str | Path, device: str | None = None, threads: int | None = None) -> None:
        self.engine: Engine = open_engine(model, device, threads)
        self.path = self.engine.path
        self.defaults = self.engine.defaults
        self.languages = self.engine.languages
        self.num_cut = 0  # sentences so far that were longer than the model was trained for, and translated in parts
        self._splitter = Splitter(self.engine.vocab, self.engine.max_pieces, self.engine.learned_placeholders)

    def translate(
        self,
        sentences: Sequence[str],
        beam: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        num_best: int = 1,
        batch_tokens: int | None = None,
        on_progress: Callable[[int], None] | None = None,
        *,
        prefixes: Sequence[str] | None = None,
        sampling: Sampling | None = None,
        alignments: bool = False,
        replace_unknowns: bool = False,
        keep: bool = False,
    ) -> list[Best]:
        """The `num_best` translations of every sentence, best first; blank ones stay blank.

        `batch_tokens` (source tokens x beam) is what suits the device unless told. A translation begins with its
        prefix. `keep`: addresses, tags, numbers and emoji come back as they are, whatever the model makes of them.
        """
        wanted = self._wanted(
            num_best,
            batch_tokens,
            alignments,
            replace_unknowns=replace_unknowns,
            beam=beam,
            length_penalty=length_penalty,
            max_length=max_length,
            sampling=sampling,
        )
        forced = prefixes or [""] * len(sentences)
        if keep:
            attempts = [Attempt(line, prefix) for line, prefix in zip(sentences, forced, strict=True)]
            return self._kept(attempts, wanted, on_progress)
        parts = [self._splitter.parts(line) for line in sentences]
        self.num_cut += sum(len(own) > 1 for own in parts)
        return self._translate(parts, forced, wanted, on_progress)

    def attempt(
        self, attempts: Sequence[Attempt], num_best: int = 1, batch_tokens: int | None = None, alignments: bool = False
    ) -> list[Best | Attempt]:
        """One turn of what `translate` does with `keep`: translations, or what is to be tried next."""
        return self._attempt(attempts, self._wanted(num_best, batch_tokens, alignments))

    def _wanted(
        self,
        num_best: int,
        batch_tokens: int | None,
        alignments: bool,
        *,
        replace_unknowns: bool = False,
        beam: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        sampling: Sampling | None = None,
    ) -> _Wanted:
        """What was not said is as the model was judged."""
        options = SearchOptions(
            beam=max(beam or self.defaults.beam, num_best),
            length_penalty=self.defaults.length_penalty if length_penalty is None else length_penalty,
            max_length=max_length or self.defaults.max_length,
            num_best=num_best,
            sampling=sampling,
            attention=alignments or replace_unknowns,
        )
        return _Wanted(options, batch_tokens, alignments, replace_unknowns)

    def _kept(
        self, attempts: Sequence[Attempt], wanted: _Wanted, on_progress: Callable[[int], None] | None
    ) -> list[Best]:
        outcomes = self._attempt(attempts, wanted, on_progress)
        while again := [(i, each) for i, each in enumerate(outcomes) if isinstance(each, Attempt)]:
            for (i, _), outcome in zip(again, self._attempt([each for _, each in again], wanted), strict=True):
                outcomes[i] = outcome
        return outcomes  # type: ignore[return-value]  # no attempt is left

    def _attempt(
        self, attempts: Sequence[Attempt], wanted: _Wanted, on_progress: Callable[[int], None] | None = None
    ) -> list[Best | Attempt]:
        parts = [attempt.parts(self._splitter) for attempt in attempts]
        self.num_cut += sum(len(own) > 1 and attempt.is_first for own, attempt in zip(parts, attempts, strict=True))
        # All that is found anyway: another one may have kept what the best one lost.
        several = replace(wanted, options=replace(wanted.options, num_best=wanted.options.num_found))
        found = self._translate(parts, [attempt.prefix for attempt in attempts], several, on_progress)
        num_best = wanted.options.num_best
        return [attempt.outcome(best, num_best) for attempt, best in zip(attempts, found, strict=True)]

    def _translate(
        self,
        sentences: Sequence[Sequence[Part]],
        prefixes: Sequence[str],
        wanted: _Wanted,
        on_progress: Callable[[int], None] | None,
    ) -> list[Best]:
        num_best = wanted.options.num_best
        best = [[copied(part, num_best, wanted.alignments) for part in parts] for parts in sentences]
        places = [(i, k) for i, parts in enumerate(sentences) for k, part in enumerate(parts) if part.ids]
        # Longest first, so that memory peaks at once and not after an hour.
        places.sort(key=lambda place: -len(sentences[place[0]][place[1]].ids))

        def search(batch: Batch) -> list[list[Found]]:
            forced = self._forced([prefixes[i] if k == 0 else "" for i, k in batch])
            return self.engine.search([sentences[i][k].ids for i, k in batch], wanted.options, forced)

        batches = self._batches(places, sentences, wanted)
        for batch, found in zip(batches, self._side_by_side(search, batches, wanted), strict=True):
            for (i, k), each in zip(batch, found, strict=True):
                best[i][k] = [self._to_text(one, sentences[i][k], wanted) for one in each]
            if on_progress is not None:
                on_progress(sum(k == 0 for _, k in batch))
        return [join(parts, own) for parts, own in zip(sentences, best, strict=True)]

    def _side_by_side(
        self, search: Callable[[Batch], list[list[Found]]], batches: list[Batch], wanted: _Wanted
    ) -> Iterator[list[list[Found]]]:
        """As many at the same time as the engine can. Drawn words follow from the order of the batches."""
        if len(batches) == 1 or self.engine.num_parallel == 1 or wanted.options.sampling is not None:
            yield from map(search, batches)
            return
        with ThreadPoolExecutor(self.engine.num_parallel) as pool:
            yield from pool.map(search, batches)

    def _batches(
        self, places: Sequence[tuple[int, int]], sentences: Sequence[Sequence[Part]], wanted: _Wanted
    ) -> list[Batch]:
        """By the number of sentences, or by tokens, the end of each counted."""
        size = None if wanted.batch_tokens else self.engine.sentences_at_once(wanted.options)
        if size is not None:
            return [list(places[first : first + size]) for first in range(0, len(places), size)]
        max_tokens = (wanted.batch_tokens or BATCH_TOKENS) // wanted.options.beam
        batches: list[Batch] = []
        longest = 0
        for i, k in places:
            if not batches or longest * (len(batches[-1]) + 1) > max_tokens:
                batches.append([])
                longest = len(sentences[i][k].ids) + 1
            batches[-1].append((i, k))
        return batches

    def _forced(self, prefixes: Sequence[str]) -> list[list[int]] | None:
        return self.engine.vocab.encode(prefixes) if any(prefixes) else None

    def _to_text(self, found: Found, part: Part, wanted: _Wanted) -> Hypothesis:
        vocab = self.engine.vocab
        if wanted.replace_unknowns and UNK_ID in found.ids:
            text = vocab.decode_pieces(self._without_unknowns(found, part), part.restorations)
        else:
            text = vocab.decode_target(found.ids, part.restorations)
        pairs = None
        if wanted.alignments and found.attention is not None:
            sources, targets = ([vocab.pieces[i] for i in ids] for ids in (part.ids, found.ids))
            pairs = align_words(sources, targets, found.attention, part.restorations)
        return Hypothesis(text, found.score, pairs)

    def _without_unknowns(self, found: Found, part: Part) -> list[str]:
        """An unknown piece as the word of the source that it looked at most."""
        assert found.attention is not None
        pieces, words = self.engine.vocab.pieces, part.text.split()
        places = words_of_pieces([pieces[i] for i in part.ids], part.restorations)
        chosen: list[str] = []
        for number, row in zip(found.ids, found.attention, strict=True):
            place = places[max(range(len(row)), key=row.__getitem__)]
            is_unknown = number == UNK_ID and len(place) > 0
            chosen.append(" ".join(words[place.start : place.stop]) if is_unknown else pieces[number])
        return chosen
