"""Hugging Face `transformers`: what translates an export made for it.

`generate` searches; what it finds is scored by forced decoding, so that scores are ours whatever its version counts.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSeq2SeqLM, GenerationConfig, LogitsProcessor

from dragoman.data.vocab import BOS_ID, EOS_ID, PAD_ID
from dragoman.dist.world import pick_device
from dragoman.errors import DragomanError
from dragoman.model.found import Found, SearchOptions
from dragoman.translate.engine_export import ExportEngine
from dragoman.translate.export_folder import EXPORT_AGAIN, ExportFolder
from dragoman.translate.progress_bars import without_progress_bars

SCORED_TOKENS = 1_024  # at once: each has a number for every piece of the vocabulary


class HuggingFaceEngine(ExportEngine):
    """See `engine.Engine`."""

    num_parallel = 1

    def __init__(self, export: ExportFolder, device: str | None, threads: int | None) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        super().__init__(export)
        self.model: Any = _load(export, device)

    @torch.inference_mode()
    def search(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> list[list[Found]]:
        if options.attention:
            raise DragomanError(
                f"{self.path} is an export for Hugging Face, which does not tell where words came from",
                "use the run itself, or an export for CTranslate2",
            )
        rows = self._generate(sources, options, prefixes)
        times = len(rows) // len(sources)
        repeated = [source for source in sources for _ in range(times)]
        forced = [len(prefix) for prefix in prefixes for _ in range(times)] if prefixes else [0] * len(rows)
        totals = self._scores(repeated, rows, forced, is_search=True)
        found = [_found(row, total, options) for row, total in zip(rows, totals, strict=True)]
        groups = (found[first : first + times] for first in range(0, len(found), times))
        return [sorted(group, key=lambda each: -each.score)[: options.num_best] for group in groups]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        with torch.inference_mode():
            return self._scores(sources, [[*target, EOS_ID] for target in targets], [0] * len(targets))

    def _generate(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, prefixes: Sequence[Sequence[int]] | None
    ) -> list[list[int]]:
        """Pieces of every translation, with its end where it came to one; several for each source, in order."""
        ids, mask = self._padded([[*source, EOS_ID] for source in sources])
        config = _generation_config(options, min(options.max_length, self._max_positions))
        processors = [] if prefixes is None else [_Prefixes(prefixes, config.num_beams, config.num_return_sequences)]
        devices = [self.model.device] if self.model.device.type == "cuda" else []
        with torch.random.fork_rng(devices, enabled=options.sampling is not None):
            if options.sampling is not None:
                torch.manual_seed(options.sampling.seed)
            rows = self.model.generate(
                ids, attention_mask=mask, generation_config=config, logits_processor=processors
            ).tolist()
        return [_without_padding(row[1:]) for row in rows]

    def _scores(
        self, sources: Sequence[Sequence[int]], labels: Sequence[Sequence[int]], first: Sequence[int], *,
        is_search: bool = False,
    ) -> list[float]:  # fmt: skip
        """Log-probability of the labels from the `first` on. A search cannot begin with the end."""
        totals: list[float] = []
        for part in _parts(labels):
            ids, mask = self._padded([[*source, EOS_ID] for source in sources[part]])
            inputs, _ = self._padded([[EOS_ID, *row[:-1]] for row in labels[part]])
            wanted, is_real = self._padded(labels[part])
            logits = self.model(input_ids=ids, attention_mask=mask, decoder_input_ids=inputs).logits.float()
            if is_search:
                logits[:, 0, EOS_ID] = -torch.inf
            log_p = logits.log_softmax(-1).gather(2, wanted[:, :, None])[:, :, 0].double()
            for row, count, skipped in zip(log_p, is_real.sum(1).tolist(), first[part], strict=True):
                totals.append(float(row[skipped:count].sum()))
        return totals

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids, and where they are real."""
        tensors = [torch.tensor(row) for row in rows]
        ids = pad_sequence(tensors, batch_first=True, padding_value=PAD_ID)
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        return ids.to(self.model.device), mask.to(self.model.device)


class _Prefixes(LogitsProcessor):
    """Where a prefix is not at its end yet, its next piece is the only one."""

    def __init__(self, prefixes: Sequence[Sequence[int]], num_beams: int, num_returned: int) -> None:
        self._prefixes = prefixes
        # Beams and drawn translations are rows of their own.
        self._rows_each = num_beams if num_beams > 1 else num_returned

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        step = input_ids.shape[1] - 1
        forced = scores.clone()
        for row in range(len(scores)):
            prefix = self._prefixes[row // self._rows_each]
            if step < len(prefix):
                # Not -inf: a beam of them would count as finished where its next piece happens to be the end.
                forced[row] = -1e9
                forced[row, EOS_ID] = -2e9
                forced[row, prefix[step]] = 0.0
        return forced


def _load(export: ExportFolder, device: str | None) -> Any:
    try:
        with without_progress_bars():
            model: Any = AutoModelForSeq2SeqLM.from_pretrained(export.path, local_files_only=True, use_safetensors=True)
        place = pick_device() if device is None else torch.empty(0, device=device).device
    except (AssertionError, RuntimeError):
        raise DragomanError(f"there is no device {device!r} here", "use cpu, or cuda where there is a GPU") from None
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0]
        raise DragomanError(f"transformers cannot load {export.path}: {reason}", EXPORT_AGAIN) from None
    is_half = export.info.quantization == "float16" and place.type == "cuda"  # CPUs are slow with it, and less exact
    return model.to(place, torch.float16 if is_half else torch.float32).eval()


def _generation_config(options: SearchOptions, max_length: int) -> GenerationConfig:
    """All finished hypotheses come back: which is best is decided by our scores."""
    if options.sampling is None:
        how: dict[str, Any] = {"num_beams": options.beam, "num_return_sequences": options.beam}
        how |= {"length_penalty": options.length_penalty, "early_stopping": options.beam > 1}
    else:
        drawn = options.sampling
        how = {"do_sample": True, "top_k": drawn.top_k, "temperature": drawn.temperature, "top_p": 1.0}
        how |= {"num_beams": 1, "num_return_sequences": options.num_best, "early_stopping": False}
    return GenerationConfig(
        **how,
        max_new_tokens=max_length,
        min_new_tokens=1,
        renormalize_logits=True,
        bos_token_id=BOS_ID,
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=EOS_ID,
    )


def _without_padding(row: list[int]) -> list[int]:
    return row[: row.index(EOS_ID) + 1] if EOS_ID in row else row


def _parts(rows: Sequence[Sequence[int]]) -> Iterator[slice]:
    """Neighbours, as many as may be scored at once."""
    size = max(1, SCORED_TOKENS // max(len(row) for row in rows))
    return (slice(first, first + size) for first in range(0, len(rows), size))


def _found(row: list[int], total: float, options: SearchOptions) -> Found:
    """As our own search counts: the end is in the length."""
    ids = row[:-1] if row[-1] == EOS_ID else row
    return Found(ids, total / len(row) ** options.length_penalty)
