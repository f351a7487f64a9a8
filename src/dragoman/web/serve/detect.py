"""Which of the served languages a text is in. The identifier takes half a second to load, so its first use loads it."""

from collections.abc import Iterable
from functools import cached_property
from threading import Lock
from typing import Any

LOOKED_AT = 2_000  # characters: more say nothing new


class Detector:
    """Knows only the languages it is given; those that the identifier never learned are not found."""

    def __init__(self, codes: Iterable[str]) -> None:
        self._codes = set(codes)
        self._lock = Lock()

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Codes with their percentages, the likeliest first; empty where none of them can be told."""
        with self._lock:
            identifier = self._identifier
        if identifier is None:
            return []
        return [(code, 100 * share) for code, share in identifier.rank(text[:LOOKED_AT]) if share == share]

    @cached_property
    def _identifier(self) -> Any:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]

        identifier: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = self._codes & set(identifier.labels)
        if not known:
            return None
        identifier.set_languages(known)
        return identifier
