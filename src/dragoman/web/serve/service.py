"""What a server knows and does for a request, whatever it came by: who may ask, which model, which answer."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.web.serve.detect import Detector
from dragoman.web.serve.keys import Keys
from dragoman.web.serve.language_names import language_name
from dragoman.web.serve.limits import Limits
from dragoman.web.serve.metrics import Metrics
from dragoman.web.serve.models import Languages, Model
from dragoman.web.serve.problem import Problem
from dragoman.web.serve.rate import RateLimit, client_of
from dragoman.web.serve.schema import TranslateRequest
from dragoman.web.serve.translation import Note, Translated, checked_texts, translate, unchanged

AUTO = "auto"


@dataclass
class Service:
    """Lives as long as the server."""

    models: Mapping[Languages, Model]
    limits: Limits = field(default_factory=Limits)
    keys: Keys = field(default_factory=Keys)
    rate: RateLimit = field(default_factory=lambda: RateLimit(None))
    metrics: Metrics = field(default_factory=Metrics)
    is_ending: bool = False

    def __post_init__(self) -> None:
        self.codes = sorted({code for languages in self.models for code in languages})
        self.detector = Detector(self.codes)
        for model in self.models.values():
            self.metrics.watch_queue(model.name, lambda batcher=model.batcher: batcher.num_waiting)

    def admit(self, address: str, key: str | None) -> None:
        self.keys.check(key)
        self.rate.check(client_of(address, key if self.keys.are_needed else None))

    def check_open(self) -> None:
        if self.is_ending:
            raise Problem(503, "the server is ending", 5)

    def abandon(self) -> None:
        for model in self.models.values():
            model.batcher.abandon()

    def close(self) -> bool:
        """Whether every engine is free."""
        return all([model.batcher.close() for model in self.models.values()])  # noqa: C419 - close them all

    async def translate(self, asked: TranslateRequest, note: Note) -> dict[str, Any]:
        texts = checked_texts(asked, self.limits, note)
        self._check_code(asked.target, "target")
        detected = await self._detected(texts) if asked.source == AUTO else None
        sources = [code for code, _ in detected] if detected is not None else [asked.source] * len(texts)
        done = await self._translate_all(texts, sources, asked, note)
        return _answer(done, asked, detected)

    async def detect(self, text: str) -> list[dict[str, Any]]:
        found = await asyncio.to_thread(self.detector.detect, text)
        return [_detected(code, percent) for code, percent in found]

    def languages(self) -> list[dict[str, Any]]:
        return [
            {"code": code, "name": language_name(code), "targets": [t for s, t in sorted(self.models) if s == code]}
            for code in self.codes
        ]

    def frontend_settings(self) -> dict[str, Any]:
        target = next(iter(self.models))[1]
        return {
            "apiKeys": self.keys.are_needed,
            "charLimit": self.limits.max_characters,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "keyRequired": self.keys.are_needed,
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": target, "name": language_name(target)},
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }

    async def _detected(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        found = [await asyncio.to_thread(self.detector.detect, text) for text in texts]
        if not all(found):
            raise Problem(400, "the language cannot be told; name it as source")
        return [each[0] for each in found]

    async def _translate_all(
        self, texts: Sequence[str], sources: Sequence[str], asked: TranslateRequest, note: Note
    ) -> list[Translated]:
        """Texts of one language go together."""
        done: dict[int, Translated] = {}
        for source in dict.fromkeys(sources):
            places = [place for place, other in enumerate(sources) if other == source]
            own = [texts[place] for place in places]
            results = (
                unchanged(own, asked)
                if source == asked.target
                else await translate(own, asked, self._model(source, asked.target), self.limits, note)
            )
            done |= dict(zip(places, results, strict=True))
        return [done[place] for place in range(len(texts))]

    def _model(self, source: str, target: str) -> Model:
        self._check_code(source, "source")
        if (source, target) not in self.models:
            raise Problem(400, f"there is no model from {source} to {target}; there are: {self._pairs()}")
        return self.models[source, target]

    def _check_code(self, code: str, field_name: str) -> None:
        if code not in self.codes:
            raise Problem(400, f"{field_name} is no language of this server; there are: {self._pairs()}")

    def _pairs(self) -> str:
        return ", ".join(model.name for model in self.models.values())


def _answer(
    done: Sequence[Translated], asked: TranslateRequest, detected: Sequence[tuple[str, float]] | None
) -> dict[str, Any]:
    """What was given as a text is answered as a text, a list as a list."""
    is_list = isinstance(asked.q, list)

    def shaped(values: list[Any]) -> Any:
        return values if is_list else values[0]

    answer: dict[str, Any] = {"translatedText": shaped([each.text for each in done])}
    if asked.alternatives:
        answer["alternatives"] = shaped([each.alternatives for each in done])
    if detected is not None:
        answer["detectedLanguage"] = shaped([_detected(*each) for each in detected])
    if asked.alignments:
        answer["alignments"] = [each.alignments for each in done]
    return answer


def _detected(code: str, percent: float) -> dict[str, Any]:
    return {"confidence": round(percent, 1), "language": code}
