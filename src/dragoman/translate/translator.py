"""`Translator`: text in, text out. Sentences are translated in batches of similar length; the order is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from dragoman.allocator import keep_freed_memory
from dragoman.data.placeholders import Restorations
from dragoman.data.vocab import EOS_ID, Vocab
from dragoman.dist.world import pick_device
from dragoman.errors import DragomanError
from dragoman.model.search import Found, SearchOptions, search, sentences_at_once
from dragoman.model.size import size_of
from dragoman.model.transformer import Transformer
from dragoman.model.weights import check_size, load_weights
from dragoman.translate.model_folder import find_model

BATCH_TOKENS = 4_096  # source tokens x beam: larger batches gain little and wait for their longest sentence


@dataclass(frozen=True)
class Hypothesis:
    """One translation; the score is its log-probability per piece^length_penalty."""

    text: str
    score: float


class Translator:
    """A loaded model. Making one takes about a second; translating reuses it."""

    def __init__(self, model: str | Path, device: str | None = None, threads: int | None = None) -> None:
        keep_freed_memory()
        if threads is not None:
            torch.set_num_threads(threads)
        folder = find_model(model)
        recipe = folder.recipe
        self.path = folder.path
        self.defaults = recipe.decode
        self.num_cut = 0  # sentences so far that were longer than the model's positions reach
        self._kernels = recipe.train.kernels
        self._learned_placeholders = recipe.vocab.placeholder_share > 0
        self._vocab = Vocab.load(folder.vocab_path)
        check_size(folder.weights_path, size_of(recipe.model, self._vocab.size).num_parameters)
        self._model = Transformer(recipe.model, self._vocab.size)
        load_weights(self._model, folder.weights_path)
        self._model.to(_checked(device)).eval()

    def translate(
        self,
        sentences: Sequence[str],
        beam: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        num_best: int = 1,
        batch_tokens: int | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """The `num_best` translations of every sentence, best first; blank ones stay blank. `batch_tokens` (source
        tokens x beam) is what suits the device unless told."""
        beam = max(beam or self.defaults.beam, num_best)
        penalty = self.defaults.length_penalty if length_penalty is None else length_penalty
        longest = min(max_length or self.defaults.max_length, self._model.config.max_positions)
        encoded = [self._vocab.encode_source(line, mask=self._learned_placeholders) for line in sentences]
        most = self._model.config.max_positions - 1
        self.num_cut += sum(len(ids) > most for ids, _ in encoded)
        sources = [[*ids[:most], EOS_ID] for ids, _ in encoded]
        results: list[list[Hypothesis]] = [[Hypothesis("", 0.0)] * num_best for _ in sentences]
        order = sorted((i for i in range(len(sources)) if len(sources[i]) > 1), key=lambda i: -len(sources[i]))
        options = SearchOptions(beam, penalty, longest, num_best, self._kernels)
        num_sentences = None if batch_tokens else sentences_at_once(self._model, options)
        for batch in _batches(order, sources, (batch_tokens or BATCH_TOKENS) // beam, num_sentences):
            found = search(self._model, [sources[i] for i in batch], EOS_ID, options)
            for i, best in zip(batch, found, strict=True):
                results[i] = [self._to_text(each, encoded[i][1]) for each in best]
            if on_progress is not None:
                on_progress(len(batch))
        return results

    def _to_text(self, found: Found, restorations: Restorations) -> Hypothesis:
        return Hypothesis(self._vocab.decode_target(found.ids, restorations), found.score)


def _checked(device: str | None) -> torch.device:
    """The device asked for, which must be there; else the GPU where there is one."""
    if device is None:
        return pick_device()
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError):
        raise DragomanError(f"there is no device {device!r} here", "use cpu, or cuda where there is a GPU") from None


def _batches(
    order: Sequence[int], sources: Sequence[Sequence[int]], max_tokens: int, num_sentences: int | None
) -> list[list[int]]:
    """Longest first, so that memory peaks at once and not after an hour. By their number, or by tokens."""
    if num_sentences is not None:
        return [list(order[first : first + num_sentences]) for first in range(0, len(order), num_sentences)]
    batches: list[list[int]] = []
    for index in order:
        longest = len(sources[batches[-1][0]]) if batches else 0
        if not batches or longest * (len(batches[-1]) + 1) > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches
