"""The models of a server: one for every pair of languages, loaded and each behind its own batcher. No torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.translate.translator import Translator
from dragoman.web.serve.batcher import Batcher, Best, Wanted
from dragoman.web.serve.limits import Limits

# A batch is bounded already: cut once more, as for files, it would cost 5 % of the speed.
BATCH_TOKENS = 8_192

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
    def translate(sentences: list[str], wanted: Wanted) -> list[Best]:
        return translator.translate(
            sentences,
            num_best=wanted.num_best,
            alignments=wanted.alignments,
            keep=True,
            batch_tokens=BATCH_TOKENS,
        )

    name = "-".join(languages)
    batcher = Batcher(
        translate, limits, lambda num_sentences: on_batch(name, num_sentences), translator.engine.num_parallel
    )
    return Model(languages, batcher)


def _checked_languages(path: str, languages: Languages) -> Languages:
    if not all(languages):
        raise DragomanError(f"{path} does not say which languages it translates", "export it again from its run")
    return languages
