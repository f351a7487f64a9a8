"""CTranslate2: what translates an export made for it. Imports no torch."""

import os
from collections.abc import Sequence
from typing import Any

import ctranslate2

from dragoman.errors import DragomanError
from dragoman.model.found import Found, SearchOptions
from dragoman.translate.engine_export import ExportEngine
from dragoman.translate.export_folder import EXPORT_AGAIN, ExportFolder
from dragoman.translate.instructions import use_widest_vectors

MAX_THREADS = 8  # each has room of its own in memory


class CTranslate2Engine(ExportEngine):
    """See `engine.Engine`."""

    def __init__(self, export: ExportFolder, device: str | None, threads: int | None) -> None:
        super().__init__(export)
        use_widest_vectors()
        self._ids = {piece: number for number, piece in enumerate(self.vocab.pieces)}
        self.num_parallel = threads or default_threads()
        self.translator = _load(export, device or "auto", self.num_parallel)
        if self.translator.device != "cpu":
            self.num_parallel = 1

    def search(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Found]]:
        results: list[Any] = self.translator.translate_batch(
            self._pieces(sources),
            None if prefixes is None else self._pieces(prefixes),
            max_input_length=0,
            max_decoding_length=min(options.max_length, self._max_positions),
            length_penalty=options.length_penalty,
            num_hypotheses=options.num_best,
            return_scores=True,
            return_attention=options.attention,
            # With several sentences in a beam search, the first row of attention is another sentence's (4.8.4).
            max_batch_size=1 if options.attention and options.beam > 1 else 0,
            **_beam_or_drawn(options),
        )
        return [self._found(result, len(source)) for result, source in zip(results, sources, strict=True)]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        results: list[Any] = self.translator.score_batch(
            self._pieces(sources), self._pieces(targets), max_input_length=0
        )
        return [sum(result.log_probs) for result in results]

    def _pieces(self, batch: Sequence[Sequence[int]]) -> list[list[str]]:
        pieces = self.vocab.pieces
        return [[pieces[number] for number in ids] for ids in batch]

    def _found(self, result: Any, num_source: int) -> list[Found]:
        attention = [[row[:num_source] for row in rows] for rows in result.attention] or [None] * len(result.hypotheses)
        return [
            Found([self._ids[piece] for piece in pieces], score, rows)
            for pieces, score, rows in zip(result.hypotheses, result.scores, attention, strict=True)
        ]


def default_threads() -> int:
    """One a core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_THREADS)


def _load(export: ExportFolder, device: str, threads: int) -> ctranslate2.Translator:
    """Batches side by side, each by one thread: two threads for one batch are slower than one, with a beam of four."""
    try:
        return ctranslate2.Translator(str(export.path), device, inter_threads=threads, intra_threads=1)
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        hint = "use --device cpu" if device == "cuda" else EXPORT_AGAIN
        raise DragomanError(f"CTranslate2 cannot load {export.path}: {reason}", hint) from None


def _beam_or_drawn(options: SearchOptions) -> dict[str, Any]:
    if options.sampling is None:
        return {"beam_size": options.beam}
    ctranslate2.set_random_seed(options.sampling.seed)
    drawn = {"sampling_topk": options.sampling.top_k, "sampling_temperature": options.sampling.temperature}
    return {"beam_size": 1, **drawn}
