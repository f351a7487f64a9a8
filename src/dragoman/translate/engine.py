"""What computes a translation: pieces in, pieces out. One for checkpoints, one for each kind of export.

Knows no text. Nothing here imports an engine's library before a model needs it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dragoman.config import DecodeConfig
from dragoman.data.vocab import Vocab
from dragoman.model.found import Found, SearchOptions
from dragoman.translate.export_folder import ExportFolder, is_export, open_export
from dragoman.translate.libraries import require_library
from dragoman.translate.model_folder import find_model

BATCH_TOKENS = 4_096  # source tokens x beam: larger batches gain little and wait for their longest sentence


class Engine(Protocol):
    """A loaded model."""

    path: Path  # of the checkpoint or export it was loaded from
    vocab: Vocab
    defaults: DecodeConfig
    max_pieces: int  # the longest sentence that it was trained on, its end left out
    learned_placeholders: bool  # whether it was taught to copy the symbols of `data.placeholders`
    languages: tuple[str, str]  # source and target; "" where nobody said
    num_parallel: int  # searches that it does at the same time, each called from a thread of its own

    def sentences_at_once(self, options: SearchOptions) -> int | None:
        """How many sentences of similar length it likes to get; None where it is tokens that count."""
        ...

    def search(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Found]]:
        """A batch of sentences without their end, none of them empty; the best translations of each."""
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """Log-probability of every target, its end included, given its source; both without their end."""
        ...


def open_engine(model: str | Path, device: str | None = None, threads: int | None = None) -> Engine:
    """The engine for a run, a checkpoint or an export."""
    path = Path(model)
    if not is_export(path):
        from dragoman.translate.engine_torch import TorchEngine

        return TorchEngine(find_model(path), device, threads)
    return open_export_engine(open_export(path), device, threads)


def open_export_engine(export: ExportFolder, device: str | None = None, threads: int | None = None) -> Engine:
    if export.info.format == "huggingface":
        require_library("transformers", f"{export.path}, an export for Hugging Face,")
        from dragoman.translate.engine_huggingface import HuggingFaceEngine

        return HuggingFaceEngine(export, device, threads)
    require_library("ctranslate2", f"{export.path}, an export for CTranslate2,")
    from dragoman.translate.engine_ctranslate2 import CTranslate2Engine

    return CTranslate2Engine(export, device, threads)
