"""Which decoder layer's attention aligns best: words that stand once and alike in source and reference must meet.

    python benchmarks/alignment_layers.py --run RUN --source FILE --target FILE [--sentences 150]

Prints a line per layer and shift: aligned, words, share. Shift 1 is the attention of the step after, when the piece is the input;
CTranslate2 gives only shift 0.
"""

import argparse
import re
from pathlib import Path
from typing import Any

from dragoman import Translator
from dragoman.data.vocab import EOS_ID
from dragoman.model import alignment
from dragoman.translate.alignment import words_of_pieces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("run", "source", "target"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=150)
    options = parser.parse_args()
    engine: Any = Translator(options.run, device="cpu").engine
    lines = [
        path.read_text(encoding="utf-8").splitlines()[: options.sentences] for path in (options.source, options.target)
    ]
    for layer in range(len(engine.model.decoder)):
        alignment.alignment_layer = lambda _, layer=layer: layer
        for shift in (0, 1):
            counts = [count(engine, *pair, shift) for pair in zip(*lines, strict=True)]
            found, words = (sum(column) for column in zip(*counts, strict=True))
            print(f"layer {layer} shift {shift} {found} {words} {found / words:.3f}", flush=True)


def count(engine: Any, source: str, target: str, shift: int) -> tuple[int, int]:
    """Words that are aligned with themselves, and words that should be."""
    pieces = engine.vocab.pieces
    sides = [engine.vocab.encode([line])[0] for line in (source, target)]
    rows = alignment.source_attention(engine.model, [[*sides[0], EOS_ID]], [[*sides[1], EOS_ID]], EOS_ID)[0]
    sources, targets = (words_of_pieces([pieces[i] for i in ids], {}) for ids in sides)
    rows = rows[shift : shift + len(sides[1])]
    pairs = {(sources[row.index(max(row))].start, targets[j].start) for j, row in enumerate(rows)}
    same = shared(source.split(), target.split())
    return len(same & pairs), len(same)


def shared(source: list[str], target: list[str]) -> set[tuple[int, int]]:
    left, right = ([re.sub(r"\W", "", word) for word in side] for side in (source, target))
    words = [word for word in left if len(word) > 2 and left.count(word) == 1 and right.count(word) == 1]
    return {(left.index(word), right.index(word)) for word in words}


if __name__ == "__main__":
    main()
