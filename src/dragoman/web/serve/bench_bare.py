"""CTranslate2 alone, for `serve --bench`: pieces in, pieces out, all sentences sorted by length beforehand."""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import ctranslate2

from dragoman.config import DecodeConfig
from dragoman.data.vocab import Vocab
from dragoman.translate.engine_ctranslate2 import default_threads
from dragoman.translate.export_folder import open_export
from dragoman.translate.translator import Translator


@dataclass
class Tally:
    """What several rounds gave together."""

    num_sentences: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, other: "Tally") -> None:
        self.num_sentences += other.num_sentences
        self.seconds += other.seconds
        self.cpu_seconds += other.cpu_seconds

    @property
    def rate(self) -> float:
        return self.num_sentences / self.seconds

    def summary(self) -> dict[str, float]:
        return {
            "sentences_per_second": round(self.rate, 2),
            "cpu_ms_per_sentence": round(1000 * self.cpu_seconds / self.num_sentences, 2),
        }


class Bare(Protocol):
    """Wherever it runs."""

    def round(self, sentences: Sequence[str], batch_size: int) -> Tally: ...

    def seconds_alone(self, sentence: str) -> float: ...


class BareHere:
    """In this process, and so with what it has set: see `Bare`."""

    def __init__(self, translator: Any, vocab: Vocab, defaults: DecodeConfig) -> None:
        self._translator = translator
        self._vocab = vocab
        self._defaults = defaults

    @classmethod
    def load(cls, model: str, device: str | None, threads: int | None) -> "BareHere":
        export = open_export(Path(model))
        inter_threads = threads or default_threads()
        translator = ctranslate2.Translator(model, device or "auto", inter_threads=inter_threads, intra_threads=1)
        return cls(translator, Vocab.load(export.vocab_path), export.info.decode)

    @classmethod
    def of(cls, translator: Translator) -> "BareHere":
        """With the model that it has loaded."""
        engine: Any = translator.engine
        return cls(engine.translator, engine.vocab, translator.defaults)

    def pieces(self, sentences: Sequence[str]) -> list[list[str]]:
        return [[self._vocab.pieces[number] for number in ids] for ids in self._vocab.encode(sentences)]

    def translate(self, batch: list[list[str]], batch_size: int = 0) -> None:
        self._translator.translate_batch(
            batch,
            max_batch_size=batch_size,
            beam_size=self._defaults.beam,
            length_penalty=self._defaults.length_penalty,
            max_decoding_length=self._defaults.max_length,
            max_input_length=0,
            return_scores=True,
        )

    def round(self, sentences: Sequence[str], batch_size: int) -> Tally:
        batch = sorted(self.pieces(sentences), key=len, reverse=True)
        start, cpu_start = time.perf_counter(), time.process_time()
        self.translate(batch, batch_size)
        return Tally(len(batch), time.perf_counter() - start, time.process_time() - cpu_start)

    def seconds_alone(self, sentence: str) -> float:
        batch = self.pieces([sentence])
        start = time.perf_counter()
        self.translate(batch)
        return time.perf_counter() - start


class BareApart:
    """In a process of its own, where nothing of ours was set: see `Bare`. What the environment says now is copied."""

    def __init__(self, model: str, device: str | None, threads: int | None) -> None:
        self._pool = ProcessPoolExecutor(1, get_context("spawn"), _load, (model, device, threads))
        self.seconds_alone("A.")

    def round(self, sentences: Sequence[str], batch_size: int) -> Tally:
        return self._pool.submit(_round, sentences, batch_size).result()

    def seconds_alone(self, sentence: str) -> float:
        return self._pool.submit(_seconds_alone, sentence).result()

    def __enter__(self) -> "BareApart":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown()


_loaded: list[BareHere] = []  # in that process


def _load(model: str, device: str | None, threads: int | None) -> None:
    _loaded.append(BareHere.load(model, device, threads))


def _round(sentences: Sequence[str], batch_size: int) -> Tally:
    return _loaded[0].round(sentences, batch_size)


def _seconds_alone(sentence: str) -> float:
    return _loaded[0].seconds_alone(sentence)
