"""Small made-up parallel text, and requests on it."""

import random
from pathlib import Path
from typing import Any

from dragoman.config import DataConfig, VocabConfig
from dragoman.data.corpus import Corpus
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.request import Request

SYLLABLES = ["ba", "ko", "mi", "ren", "tal", "su", "vor", "ne", "gau", "lin", "dro", "pe"]


def sentences(num_pairs: int, seed: int = 0) -> list[tuple[str, str]]:
    """Distinct pairs; the target is the source with every word turned round."""
    draw = random.Random(seed)

    def word() -> str:
        return "".join(draw.choice(SYLLABLES) for _ in range(draw.randint(1, 3)))

    pairs: dict[str, str] = {}
    while len(pairs) < num_pairs:
        words = [word() for _ in range(draw.randint(3, 9))] + [str(draw.randint(1, 99))]
        pairs[" ".join(words) + "."] = " ".join(reversed(words)) + "."
    return list(pairs.items())


def write_corpus(folder: Path, pairs: list[tuple[str, str]], name: str = "text") -> Corpus:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{language}" for language in ("en", "de")]
    for side, path in enumerate(paths):
        path.write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())
    return Corpus(name, paths[0], paths[1])


def make_request(out: Path, *corpora: Any, **changes: Any) -> Request:
    settings: dict[str, Any] = {
        "out": out,
        "languages": "en-de",
        "corpora": corpora,
        "dev": (),
        "test": (),
        "data": DataConfig(),
        "vocab": VocabConfig(size=400),
        "num_workers": 1,
    }
    return Request(**(settings | changes))


def run_prepare(out: Path, *corpora: Any, **changes: Any) -> Prepared:
    return prepare(make_request(out, *corpora, **changes), lambda stage, done, total: None)
