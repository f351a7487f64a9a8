"""The models of a server: one for every pair of languages, loaded and each behind its own batcher. No torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.translate.attempt import Attempt, Best
from dragoman.translate.translator import Translator
from dragoman.web.serve.batcher import Batcher, Item, Wanted
from dragoman.web.serve.limits import Limits

# A batch is bounded already: cut once more, as for files, it would cost 5 % of the speed.
BATCH_TOKENS = 16_384

Languages = tuple[str, str]  # source and target


@dataclass(frozen=True)
class Model:
    """What translates one pair of languages."""

    languages: Languages
    batcher: Batcher

    @property
    def name(self) -> str:
        return "-".join(self.languages)


def open_models(
    paths: Sequence[str],
    limits: Limits,
    device: str | None = None,
    threads: int | None = None,
    on_batch: Callable[[str, int], None] = lambda pair, num_sentences: None,
) -> dict[Languages, Model]:
    """All of them, or an error that says which cannot be served and why."""
    translators: dict[Languages, Translator] = {}
    for path in paths:
        translator = Translator(path, device, threads)
        languages = _checked_languages(path, translator.languages)
        if languages in translators:
            problem = f"{path} and {translators[languages].path} both translate {'-'.join(languages)}"
            raise DragomanError(problem, "serve one of them")
        translators[languages] = translator
    return {languages: make_model(languages, each, limits, on_batch) for languages, each in translators.items()}


def make_model(
    languages: Languages, translator: Translator, limits: Limits, on_batch: Callable[[str, int], None]
) -> Model:
    def translate(items: list[Item], wanted: Wanted) -> list[Best | Attempt]:
        attempts = [Attempt(item) if isinstance(item, str) else item for item in items]
        return translator.attempt(attempts, wanted.num_best, BATCH_TOKENS, wanted.alignments)

    def measure(sentences: Sequence[str]) -> list[int]:
        return [translator.engine.vocab.num_pieces(sentence) for sentence in sentences]

    def count(num_sentences: int) -> None:
        on_batch("-".join(languages), num_sentences)

    batcher = Batcher(translate, limits, count, translator.engine.num_parallel, measure)
    return Model(languages, batcher)


def _checked_languages(path: str, languages: Languages) -> Languages:
    if not all(languages):
        raise DragomanError(f"{path} does not say which languages it translates", "export it again from its run")
    return languages
