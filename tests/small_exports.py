"""Exports as tests need them: written by the converter alone, without the checks of `dragoman export`."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dragoman import __version__
from dragoman.data.vocab import Vocab
from dragoman.hashing import file_sha256
from dragoman.model.transformer import Transformer
from dragoman.model.weights import load_weights
from dragoman.translate.export.ctranslate2 import to_ctranslate2
from dragoman.translate.export_folder import NAME
from dragoman.translate.model_folder import find_model


def write_export(model: Path, folder: Path, languages: tuple[str, str] = ("en", "de"), **changes: Any) -> Path:
    """A CTranslate2 int8 export of a run or a checkpoint; `changes` are other entries of its model.json."""
    found = find_model(model)
    recipe, vocab = found.recipe, Vocab.load(found.vocab_path)
    transformer = Transformer(recipe.model, vocab.size)
    load_weights(transformer, found.weights_path)
    to_ctranslate2(transformer, vocab, folder, "int8")
    shutil.copyfile(found.vocab_path, folder / "vocab.model")
    info = {
        "schema": 1,
        "format": "ctranslate2",
        "quantization": "int8",
        "dragoman": __version__,
        "created": datetime.now(UTC).isoformat(),
        "source_language": languages[0],
        "target_language": languages[1],
        "max_positions": recipe.model.max_positions,
        "max_pieces": recipe.batch.max_pieces,
        "learned_placeholders": recipe.vocab.placeholder_share > 0,
        "decode": recipe.decode.model_dump(),
        "origin": {"recipe": "test"},
        "gate": {},
        "files": {
            path.name: {"num_bytes": path.stat().st_size, "sha256": file_sha256(path)}
            for path in sorted(folder.iterdir())
        },
    }
    (folder / NAME).write_text(json.dumps({**info, **changes}), encoding="utf-8")
    return folder
