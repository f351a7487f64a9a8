"""Beam search (beam 1: greedy) with the scores and the stopping rule of CTranslate2.

A hypothesis scores the sum of its log-probabilities over length^alpha, its end included. A sentence is
done when it has as many finished hypotheses as the beam is wide (with alpha 0: when its best beam finished).
On a GPU that runs the fused kernels it is theirs, in `fused.decoding`; here is the one that runs everywhere.
Shape letters: B sentences still open, K beam, C candidates (2K), V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import torch

from dragoman.model.found import Found, Sampling, SearchOptions
from dragoman.model.fused.decoding.room import MOST_ROWS
from dragoman.model.fused.support import fused_obstacle
from dragoman.model.incremental import IncrementalDecoder
from dragoman.model.layout import Layout
from dragoman.model.transformer import Transformer

if TYPE_CHECKING:
    from dragoman.model.fused.decoding.decoder import Decoder

WIDEST_FUSED_BEAM = 32
_decoders: "WeakKeyDictionary[Transformer, Decoder]" = WeakKeyDictionary()


@dataclass
class _Open:
    """A sentence that is still being decoded."""

    index: int  # its place in the caller's list
    finished: list[Found] = field(default_factory=list)
    top_finished: bool = False


def search(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    eos_id: int,
    options: SearchOptions,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Found]]:
    """Translate a batch of encoded sentences (each ending in EOS); the best hypotheses first, each with its prefix."""
    if prefixes is not None or not is_fused(model, options):
        return _search(model, sources, eos_id, options, prefixes)
    found = _decoder_of(model).search(model, sources, eos_id, options)
    # A number that is too large for 16 bits: rare, but a run must not end by it.
    lost = [i for i, best in enumerate(found) if not best]
    if lost:
        for i, best in zip(lost, _search(model, [sources[i] for i in lost], eos_id, options), strict=True):
            found[i] = best
    return found


def is_fused(model: Transformer, options: SearchOptions) -> bool:
    """Whether a search goes through the fused kernels."""
    weight = model.embedding.weight
    wanted = options.kernels == "auto" and options.beam <= WIDEST_FUSED_BEAM and options.sampling is None
    return wanted and weight.dtype == torch.float32 and fused_obstacle(model.config, "bf16", weight.device) is None


def sentences_at_once(model: Transformer, options: SearchOptions) -> int | None:
    """How many sentences of similar length a search likes to get; None where it is tokens that count."""
    return max(1, MOST_ROWS // options.beam) if is_fused(model, options) else None


def release(model: Transformer) -> None:
    """Give back what searches keep on the device from one call to the next."""
    _decoders.pop(model, None)


def _decoder_of(model: Transformer) -> "Decoder":
    decoder = _decoders.get(model)
    if decoder is None or decoder.device != model.embedding.weight.device:
        from dragoman.model.fused.decoding.decoder import Decoder

        decoder = _decoders[model] = Decoder(model)
    return decoder


@torch.inference_mode()
def _search(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    eos_id: int,
    options: SearchOptions,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Found]]:
    """Through torch's own operations: any device, any model."""
    device = model.embedding.weight.device
    lengths = np.array([len(source) for source in sources])
    ids_S = torch.tensor([piece for source in sources for piece in source], device=device)
    decoder = IncrementalDecoder(model, ids_S, Layout(lengths, device))
    results: list[list[Found]] = [[] for _ in sources]
    still_open = [_Open(i) for i in range(len(sources))]
    scores_BK = torch.zeros(len(sources), 1, device=device)
    history_BKP = torch.empty(len(sources), 1, 0, dtype=torch.int64, device=device)
    last_N = torch.full((len(sources),), eos_id, device=device)
    draw = _Draw(options.sampling, device) if options.sampling else None
    for step in range(options.max_length):
        logits_NV = decoder.logits(last_N)
        if step == 0:
            logits_NV[:, eos_id] = -torch.inf  # a translation has at least one piece
        if prefixes is not None:
            _force(logits_NV, [prefixes[sentence.index] for sentence in still_open], step)
        if draw is None:
            scores_BC, beams_BC, words_BC = _candidates(logits_NV, scores_BK, options.beam)
        else:
            scores_BC, beams_BC, words_BC = draw.candidates(logits_NV, scores_BK)
        is_last = step + 1 == options.max_length
        kept_BK = _harvest(still_open, history_BKP, scores_BC, beams_BC, words_BC, eos_id, is_last, options)
        going_on = [not _is_done(sentence, options) for sentence in still_open]
        for sentence, goes_on in zip(still_open, going_on, strict=True):
            if is_last or not goes_on:
                results[sentence.index] = sorted(sentence.finished, key=lambda f: -f.score)[: options.num_best]
        if is_last or not any(going_on):
            break
        rows_B = torch.tensor([b for b, goes_on in enumerate(going_on) if goes_on], device=device)
        width = scores_BK.shape[1]
        kept_BK, scores_BC, beams_BC, words_BC, history_BKP = (
            tensor.index_select(0, rows_B) for tensor in (kept_BK, scores_BC, beams_BC, words_BC, history_BKP)
        )
        beams_BK, words_BK = beams_BC.gather(1, kept_BK), words_BC.gather(1, kept_BK)
        # Only a beam wider than the vocabulary keeps an ended candidate, for want of others: it must not win again.
        scores_BK = scores_BC.gather(1, kept_BK).masked_fill(words_BK == eos_id, -torch.inf)
        past_BKP = history_BKP.gather(1, beams_BK[:, :, None].expand(-1, -1, history_BKP.shape[2]))
        history_BKP = torch.cat([past_BKP, words_BK[:, :, None]], dim=2)
        last_N = words_BK.reshape(-1)
        if options.beam > 1 or not all(going_on):
            rows_N = (rows_B[:, None] * width + beams_BK).reshape(-1)
            decoder.follow(rows_N, None if all(going_on) else rows_B)
        still_open = [sentence for sentence, goes_on in zip(still_open, going_on, strict=True) if goes_on]
    return results


def _force(logits_NV: torch.Tensor, prefixes: Sequence[Sequence[int]], step: int) -> None:
    """Where a prefix is not at its end yet, its next piece is the only one; it adds nothing to the score."""
    width = logits_NV.shape[0] // len(prefixes)
    for number, prefix in enumerate(prefixes):
        if step < len(prefix):
            rows = logits_NV[number * width : (number + 1) * width]
            rows.fill_(-torch.inf)
            rows[:, prefix[step]] = 0.0


class _Draw:
    """Draws the next word of each sentence; one row a sentence."""

    def __init__(self, sampling: Sampling, device: torch.device) -> None:
        self._sampling = sampling
        self._generator = torch.Generator(device).manual_seed(sampling.seed)

    def candidates(
        self, logits_NV: torch.Tensor, scores_BK: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """As `_candidates`, with one candidate a sentence. The score is the model's, whatever the temperature."""
        log_NV = logits_NV.float().log_softmax(-1)
        num_words = min(self._sampling.top_k or log_NV.shape[1], log_NV.shape[1])
        top_NC, words_NC = log_NV.topk(num_words, dim=-1)
        shares_NC = (top_NC / self._sampling.temperature).softmax(-1)
        places_N1 = torch.multinomial(shares_NC, 1, generator=self._generator)
        words_N1 = words_NC.gather(1, places_N1)
        return scores_BK + top_NC.gather(1, places_N1), torch.zeros_like(words_N1), words_N1


def _candidates(
    logits_NV: torch.Tensor, scores_BK: torch.Tensor, beam: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The 2 x beam best continuations of every sentence: total score, beam they extend, word. (B, C) each."""
    num_sentences, width = scores_BK.shape
    num_words = min(2 * beam, logits_NV.shape[1])
    top_NC, words_NC = logits_NV.float().log_softmax(-1).topk(num_words, dim=-1)
    total_BC = (top_NC.view(num_sentences, width, -1) + scores_BK[:, :, None]).flatten(1)
    scores_BC, places_BC = total_BC.topk(min(2 * beam, total_BC.shape[1]), dim=-1)
    words_BC = words_NC.view(num_sentences, -1).gather(1, places_BC)
    return scores_BC, places_BC // num_words, words_BC


def _harvest(
    still_open: list[_Open],
    history_BKP: torch.Tensor,
    scores_BC: torch.Tensor,
    beams_BC: torch.Tensor,
    words_BC: torch.Tensor,
    eos_id: int,
    is_last: bool,
    options: SearchOptions,
) -> torch.Tensor:
    """Collect finished hypotheses among the first K candidates; (B, K) places of those that go on."""
    beam = min(options.beam, words_BC.shape[1])
    ends_BC = words_BC == eos_id
    places_BK = torch.arange(beam, device=words_BC.device).expand(len(still_open), beam)
    if not is_last and not ends_BC[:, :beam].any():
        return places_BK
    # Candidates that do not end, best first: a finished beam's place goes to the next one behind the first K.
    kept_BK = torch.argsort(ends_BC.int(), dim=1, stable=True)[:, :beam]
    closing_BK = torch.ones_like(ends_BC[:, :beam]) if is_last else ends_BC[:, :beam]
    closing_BK &= scores_BC[:, :beam] > -torch.inf
    for b, k in closing_BK.nonzero().tolist():
        words = history_BKP[b, int(beams_BC[b, k])].tolist()
        if not ends_BC[b, k]:
            words.append(int(words_BC[b, k]))
        length = len(words) + int(ends_BC[b, k])  # EOS counts, as in CTranslate2
        still_open[b].finished.append(Found(words, float(scores_BC[b, k]) / length**options.length_penalty))
        still_open[b].top_finished |= k == 0
    return kept_BK


def _is_done(sentence: _Open, options: SearchOptions) -> bool:
    if options.length_penalty == 0:
        return sentence.top_finished and len(sentence.finished) >= options.num_best
    return len(sentence.finished) >= options.beam
