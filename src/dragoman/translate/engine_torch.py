"""Our own model and search: what translates a run or a checkpoint."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import torch

from dragoman.allocator import keep_freed_memory
from dragoman.data.vocab import EOS_ID, Vocab
from dragoman.dist.world import pick_device
from dragoman.errors import DragomanError
from dragoman.model.alignment import source_attention
from dragoman.model.found import Found, SearchOptions
from dragoman.model.layout import Layout
from dragoman.model.loss import token_nll
from dragoman.model.search import search, sentences_at_once
from dragoman.model.size import size_of
from dragoman.model.transformer import Transformer
from dragoman.model.weights import check_size, load_weights
from dragoman.translate.model_folder import ModelFolder


class TorchEngine:
    """See `engine.Engine`."""

    num_parallel = 1

    def __init__(self, folder: ModelFolder, device: str | None, threads: int | None) -> None:
        keep_freed_memory()
        if threads is not None:
            torch.set_num_threads(threads)
        recipe = folder.recipe
        self.path = folder.path
        self.vocab = Vocab.load(folder.vocab_path)
        self.defaults = recipe.decode
        self.max_pieces = recipe.batch.max_pieces
        self.learned_placeholders = recipe.vocab.placeholder_share > 0
        self.languages = folder.languages
        self._kernels = recipe.train.kernels
        check_size(folder.weights_path, size_of(recipe.model, self.vocab.size).num_parameters)
        self.model = Transformer(recipe.model, self.vocab.size)
        load_weights(self.model, folder.weights_path)
        self.model.to(_checked(device)).eval()

    def sentences_at_once(self, options: SearchOptions) -> int | None:
        return sentences_at_once(self.model, replace(options, kernels=self._kernels))

    def search(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Found]]:
        longest = min(options.max_length, self.model.config.max_positions)
        options = replace(options, kernels=self._kernels, max_length=longest)
        ended = [[*source, EOS_ID] for source in sources]
        if options.sampling is None:
            found = search(self.model, ended, EOS_ID, options, prefixes)
        else:
            found = self._draw(ended, options, prefixes)
        return self._with_attention(ended, found) if options.attention else found

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        device = self.model.embedding.weight.device
        rows = {
            "source": [[*ids, EOS_ID] for ids in sources],
            "input": [[EOS_ID, *ids] for ids in targets],
            "label": [[*ids, EOS_ID] for ids in targets],
        }
        ids = {name: torch.tensor(list(chain.from_iterable(side)), device=device) for name, side in rows.items()}
        source, target = (Layout(np.array([len(row) for row in rows[n]]), device) for n in ("source", "input"))
        with torch.inference_mode():
            hidden = self.model(ids["source"], source, ids["input"], target)
            nll_T = token_nll(hidden, self.model.embedding.weight, ids["label"]).double().cpu().numpy()
        return (-np.add.reduceat(nll_T, target.starts[:-1])).tolist()

    def _draw(
        self, ended: list[list[int]], options: SearchOptions, prefixes: Sequence[Sequence[int]] | None
    ) -> list[list[Found]]:
        """Every sentence as often as translations are wanted: drawn ones differ."""
        times = options.num_best
        repeated = [source for source in ended for _ in range(times)]
        forced = None if prefixes is None else [prefix for prefix in prefixes for _ in range(times)]
        found = search(self.model, repeated, EOS_ID, replace(options, beam=1, num_best=1), forced)
        flat = [best[0] for best in found]
        groups = (flat[first : first + times] for first in range(0, len(flat), times))
        return [sorted(group, key=lambda each: -each.score) for group in groups]

    def _with_attention(self, ended: list[list[int]], found: list[list[Found]]) -> list[list[Found]]:
        sources = [source for source, best in zip(ended, found, strict=True) for _ in best]
        attention = iter(source_attention(self.model, sources, [each.ids for best in found for each in best], EOS_ID))
        return [[replace(each, attention=next(attention)) for each in best] for best in found]


def _checked(device: str | None) -> torch.device:
    """The device asked for, which must be there; else the GPU where there is one."""
    if device is None:
        return pick_device()
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError):
        raise DragomanError(f"there is no device {device!r} here", "use cpu, or cuda where there is a GPU") from None
