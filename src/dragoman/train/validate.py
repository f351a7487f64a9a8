"""Judging a model while it trains: loss without dropout and smoothing, and real decoding. Shared out over the ranks.

Every rank ends with the same results, so that decisions drawn from them are the same everywhere.
"""

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from dragoman.config import EvaluateConfig, Recipe
from dragoman.data.batches import Batch, BatchPlan, batch_of
from dragoman.data.shards import EvalSet, ShardSet
from dragoman.data.vocab import EOS_ID, Vocab
from dragoman.dist.world import World
from dragoman.model.loss import token_nll
from dragoman.model.search import SearchOptions, release, search, sentences_at_once
from dragoman.model.size import EVALUATION_TOKENS
from dragoman.model.transformer import Transformer
from dragoman.run.records import EvalRecord, EvalSentence
from dragoman.score import quick_bleu_chrf
from dragoman.train.tensors import BatchTensors


@dataclass(frozen=True)
class DevSet:
    """A dev set, encoded once for the whole run."""

    name: str
    sources: list[str]
    references: list[str]
    source_ids: list[np.ndarray]
    target_ids: list[np.ndarray]


@dataclass(frozen=True)
class Evaluation:
    """One dev set at one step."""

    record: EvalRecord
    sentences: list[EvalSentence]


class CutShortError(Exception):
    """A rank was told to leave: the evaluation is left out, on all ranks."""


class Validator:
    """Holds what stays the same between evaluations."""

    def __init__(
        self,
        data: ShardSet,
        plan: BatchPlan,
        vocab: Vocab,
        recipe: Recipe,
        world: World,
        is_leaving: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_leaving = is_leaving  # asked between batches: who is told to leave has seconds to save
        self.config: EvaluateConfig = recipe.evaluate
        self.kernels = recipe.train.kernels
        self.vocab = vocab
        self.world = world
        self.target_language = data.manifest.target_language
        self.longest = recipe.model.max_positions
        self.dev_sets = [_encode(dev_set, vocab, self.longest) for dev_set in data.dev_sets]
        sample = plan.fixed_sample(self.config.train_pairs) if self.config.train_pairs else None
        self.train_pairs = None if sample is None else _split(sample)

    def run(
        self, model: Transformer, autocast: AbstractContextManager[object], step: int, attempt: int
    ) -> list[Evaluation]:
        """Judge the model on every dev set; the first one is also translated. Nothing if a rank must leave."""
        model.eval()
        try:
            with torch.inference_mode(), autocast:
                return [self._evaluate(model, number, step, attempt) for number in range(len(self.dev_sets))]
        except CutShortError:
            return []
        finally:
            model.train()

    def _evaluate(self, model: Transformer, number: int, step: int, attempt: int) -> Evaluation:
        dev_set = self.dev_sets[number]
        is_first = number == 0
        start = time.perf_counter()
        nll = self._sentence_nll(model, dev_set.source_ids, dev_set.target_ids)
        train_loss = self._train_loss(model) if is_first else None
        decode_start = time.perf_counter()
        hypotheses = self._decode(model, dev_set) if is_first and self.config.decode else []
        decode_seconds = time.perf_counter() - decode_start
        scores = None
        if hypotheses:
            scores = quick_bleu_chrf(hypotheses, dev_set.references[: len(hypotheses)], self.target_language)
        num_tokens = [len(ids) for ids in dev_set.target_ids]
        record = EvalRecord(
            attempt=attempt,
            time=time.time(),
            step=step,
            dev_set=dev_set.name,
            loss=sum(nll) / sum(num_tokens),
            train_loss=train_loss,
            bleu=None if scores is None else scores.bleu,
            chrf=None if scores is None else scores.chrf,
            bleu_signature=None if scores is None else scores.bleu_signature,
            chrf_signature=None if scores is None else scores.chrf_signature,
            num_sentences=len(nll),
            num_decoded=len(hypotheses),
            target_tokens=sum(num_tokens),
            loss_seconds=decode_start - start,
            decode_seconds=decode_seconds,
        )
        padded = hypotheses + [None] * (len(nll) - len(hypotheses))
        rows = zip(dev_set.sources, dev_set.references, padded, nll, num_tokens, strict=True)
        return Evaluation(record, [EvalSentence(index, *row) for index, row in enumerate(rows)])

    def _train_loss(self, model: Transformer) -> float | None:
        if self.train_pairs is None:
            return None
        sources, targets = self.train_pairs
        return sum(self._sentence_nll(model, sources, targets)) / sum(len(target) for target in targets)

    def _sentence_nll(
        self, model: Transformer, sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]
    ) -> list[float]:
        """Negative log-likelihood of every sentence, batches dealt over the ranks."""
        order = sorted(range(len(targets)), key=lambda i: (len(targets[i]), len(sources[i])))
        batches = _cut(order, [max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)])
        mine: list[tuple[int, float]] = []
        for indices in self._own(batches):
            batch = batch_of([sources[i] for i in indices], [targets[i] for i in indices])
            piece = BatchTensors.of(batch, self.world.device)
            hidden = model(piece.source_ids, piece.source, piece.input_ids, piece.target)
            nll_T = token_nll(hidden, model.embedding.weight, piece.labels).double().cpu().numpy()
            sums = np.add.reduceat(nll_T, piece.target.starts[:-1])
            mine.extend(zip(indices, sums.tolist(), strict=True))
        return [value for _, value in sorted(self._merged(mine))]

    def _decode(self, model: Transformer, dev_set: DevSet) -> list[str]:
        """Translate the first sentences of a dev set, longest first, dealt over the ranks."""
        num_sentences = min(self.config.max_decoded, len(dev_set.sources))
        encoded = [self.vocab.encode_source(line) for line in dev_set.sources[:num_sentences]]
        sources = [[*ids[: self.longest - 1], EOS_ID] for ids, _ in encoded]
        order = sorted(range(num_sentences), key=lambda i: -len(sources[i]))
        options = SearchOptions(beam=self.config.beam, kernels=self.kernels)
        most = sentences_at_once(model, options)
        if most is None:
            batches = _cut(order, [len(source) * options.beam for source in sources])
        else:
            batches = _share(order, most, self.world.size)
        mine: list[tuple[int, str]] = []
        for indices in self._own(batches):
            longest = min(self.longest, 2 * len(sources[indices[0]]) + 20)
            options = replace(options, max_length=longest)
            found = search(model, [sources[i] for i in indices], EOS_ID, options)
            mine.extend(
                (i, self.vocab.decode_target(best[0].ids, encoded[i][1]))
                for i, best in zip(indices, found, strict=True)
            )
        release(model)  # training wants the memory back
        return [text for _, text in sorted(self._merged(mine))]

    def _own(self, batches: list[list[int]]) -> Generator[list[int]]:
        """This rank's share, until it is told to leave."""
        for batch in batches[self.world.rank :: self.world.size]:
            if self._is_leaving():
                return
            yield batch

    def _merged(self, mine: list[tuple[int, Any]]) -> list[list[Any]]:
        """What all ranks found; all of them hear it here if one has left something out."""
        parts = self.world.gather([mine, self._is_leaving()])
        if any(is_cut for _, is_cut in parts):
            raise CutShortError
        return [pair for part, _ in parts for pair in part]


def _encode(dev_set: EvalSet, vocab: Vocab, longest: int) -> DevSet:
    sources, references = dev_set.lines()
    source_ids, target_ids = (
        [np.array([*ids[: longest - 1], EOS_ID]) for ids in vocab.encode(lines)] for lines in (sources, references)
    )
    return DevSet(dev_set.name, sources, references, source_ids, target_ids)


def _split(batch: Batch) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return (
        np.split(batch.source_ids, np.cumsum(batch.source_lengths)[:-1]),
        np.split(batch.target_ids, np.cumsum(batch.target_lengths)[:-1]),
    )


def _cut(order: Sequence[int], tokens: Sequence[int]) -> list[list[int]]:
    """Neighbours in `order` together while their tokens fit a batch."""
    batches: list[list[int]] = []
    room = 0
    for index in order:
        if tokens[index] > room or not batches:
            batches.append([])
            room = EVALUATION_TOKENS
        batches[-1].append(index)
        room -= tokens[index]
    return batches


def _share(order: Sequence[int], most: int, num_ranks: int) -> list[list[int]]:
    """Neighbours in `order` together, at most so many, in as many batches for every rank."""
    rounds = max(1, math.ceil(len(order) / (most * num_ranks)))
    size = max(1, math.ceil(len(order) / (rounds * num_ranks)))
    return [list(order[first : first + size]) for first in range(0, len(order), size)]
