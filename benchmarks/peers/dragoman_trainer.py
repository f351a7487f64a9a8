"""Transformer-base through Dragoman on the text of peers_gpu.py, which reads its log: batches planned and packed by a
thread, passes, update. Records and validation are left out; benchmarks/train_gpu.py says what those cost.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.config import CutBatch, Recipe
from dragoman.data.batches import BatchPlan
from dragoman.data.shards import ID_TYPE, Shard, offsets_of
from dragoman.data.vocab import EOS_ID
from dragoman.dist.world import World
from dragoman.recipe import load_recipe
from dragoman.train.build import build_model
from dragoman.train.feed import feed
from dragoman.train.optim import Optimizer
from dragoman.train.passes import make_passes

FIRST_WORD = 4  # behind the special pieces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=json.loads, required=True)
    settings = parser.parse_args().settings
    device = torch.device("cuda" if settings["cuda"] else "cpu")
    text = TextShard(Path(settings["work"]))
    recipe = sized(settings, text.num_words)
    plan = BatchPlan([text], CutBatch.model_validate(recipe.batch.model_dump()), 1)
    built = build_model(recipe, text.num_words, device)
    passes = make_passes(built, recipe, plan)
    optimizer = Optimizer(built.flat, recipe.optim, built.rounded, built.scale)
    inputs = feed(plan, World(0, 1, 0, device), range(1, settings["steps"] + 1), passes.piece)
    began, tokens = 0.0, 0
    for number, step in enumerate(inputs, start=1):
        for piece in step.pieces:
            passes.forward(piece, number, step.plan.target_tokens)
            passes.backward()
        optimizer.update(1e-4)
        tokens += step.plan.target_tokens
        if number in (settings["warmup"], settings["steps"]):
            if device.type == "cuda":
                torch.cuda.synchronize()
            if number == settings["warmup"]:
                began, tokens = time.perf_counter(), 0
    figures = {"steps": settings["steps"] - settings["warmup"], "tokens": tokens}
    print("measured", json.dumps({**figures, "seconds": time.perf_counter() - began}))


class TextShard(Shard):
    """The text as ids, in memory."""

    def __init__(self, work: Path) -> None:
        words = (work / "vocab.eole").read_text().splitlines()
        ids = {line.split("\t")[0]: FIRST_WORD + number for number, line in enumerate(words)}
        self.num_words = -(-(len(ids) + FIRST_WORD) // 8) * 8
        sides = [self._read(work / f"text.{side}", ids) for side in ("src", "tgt")]
        self.name = "text"
        self.num_pairs = len(sides[0])
        self.lengths = np.array([[len(line) for line in side] for side in sides], dtype=ID_TYPE).T.copy()
        self.source_offsets, self.target_offsets = (offsets_of(self.lengths[:, side]) for side in (0, 1))
        self.source_ids, self.target_ids = (np.concatenate(side).astype(ID_TYPE) for side in sides)

    def _read(self, path: Path, ids: dict[str, int]) -> list[list[int]]:
        with path.open() as lines:
            return [[*(ids.get(word, FIRST_WORD) for word in line.split()), EOS_ID] for line in lines]


def sized(settings: dict[str, Any], num_words: int) -> Recipe:
    values = load_recipe("base").model_dump()
    values["vocab"]["size"] = num_words
    values["model"] |= {"d_model": settings["hidden"], "num_heads": settings["heads"], "d_ffn": settings["ffn"]}
    values["model"] |= {"num_encoder_layers": settings["layers"], "num_decoder_layers": settings["layers"]}
    longest = min(settings["max_length"], settings["batch_tokens"] - 1)
    values["batch"] = {"target_tokens": settings["batch_tokens"], "num_microbatches": 1, "max_pieces": longest}
    return Recipe.model_validate(values)


if __name__ == "__main__":
    main()
