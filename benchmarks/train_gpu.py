"""Training speed on one GPU: the bare step, where its milliseconds go, and the whole loop beside it.

    python benchmarks/train_gpu.py [--sizes base,big] [--tokens 25600,8192] [--loop DIR] [--kernels]

Text is synthetic (log-normal lengths, a vocabulary of 32,768, frequencies by Zipf), fresh in every step. Real target
tokens are counted: EOS yes, padding no. `--loop DIR`, a folder made by `dragoman prepare`, also trains there with
`dragoman train`, logging and all, and compares with the bare step on the same text. One JSON line each. FLOPs are
6 x matrix parameters x target tokens, logits included and attention left out, over a matrix product of 8192 cubed.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.config import Recipe
from dragoman.data.batches import BatchPlan
from dragoman.data.shards import ID_TYPE, Shard, open_shards
from dragoman.model.size import size_of
from dragoman.recipe import load_recipe
from dragoman.train.build import build_model
from dragoman.train.optim import Optimizer
from dragoman.train.passes import make_passes
from dragoman.train.synthetic import FIRST_ID, SyntheticShard
from gpu_state import around, kernel_groups

NUM_PIECES = 12
WARMUP, TIMED = 10, 60
LOOP_STEPS, LOOP_WARMUP = 700, 100
GROUPS = (
    ("matrix products", r"nvjet|gemm|cutlass|splitK"),
    ("attention", r"^attention|flash|fmha"),
    ("norm, dropout, residual", r"^norm_"),
    ("activation, dropout", r"^activation_"),
    ("loss", r"^loss_"),
    ("embedding", r"^embedding_"),
    ("update", r"^adam_|multi_tensor|reduce_kernel"),
    ("sums of partials", r"^fold_"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="base,big")
    parser.add_argument("--tokens", default="25600,8192")
    parser.add_argument("--loop", type=Path, help="a prepared data folder, to train there too")
    parser.add_argument("--kernels", action="store_true", help="where the milliseconds go, by group of kernels")
    parser.add_argument("--torch-kernels", action="store_true", help="torch's own operations beside the fused ones")
    options = parser.parse_args()
    product = matrix_product_flops()
    for size in options.sizes.split(","):
        for tokens in map(int, options.tokens.split(",")):
            for kernels in ("auto", "torch") if options.torch_kernels else ("auto",):
                recipe = sized(size, tokens, kernels)
                print(json.dumps({**bare_step(recipe, ZipfShard(recipe), product, options.kernels), **around()}))
    if options.loop is not None:
        for tokens in map(int, options.tokens.split(",")):
            print(json.dumps({**whole_loop(options.loop, tokens, product), **around()}))


def sized(size: str, tokens: int, kernels: str = "auto", vocab_size: int = 32_768) -> Recipe:
    values = load_recipe(size).model_dump()
    values["batch"] = {**values["batch"], "target_tokens": tokens, "num_microbatches": 1}
    values["vocab"]["size"] = vocab_size
    values["train"]["kernels"] = kernels
    return Recipe.model_validate(values)


class ZipfShard(SyntheticShard):
    """Frequent words are frequent, so that gradients of embeddings collide as they do in real text."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(
            recipe.model_copy(
                update={
                    "batch": recipe.batch.model_copy(update={"target_tokens": NUM_PIECES * recipe.batch.target_tokens})
                }
            )
        )
        random = np.random.default_rng(1)
        share = 1 / np.arange(1, recipe.vocab.size - FIRST_ID + 1)
        words = np.arange(FIRST_ID, recipe.vocab.size, dtype=ID_TYPE)
        self.source_ids, self.target_ids = (
            random.choice(words, size=len(ids), p=share / share.sum()) for ids in (self.source_ids, self.target_ids)
        )


def bare_step(recipe: Recipe, shard: Shard, product: float, by_kernel: bool) -> dict[str, Any]:
    """Forward, backward and update on fresh text, and nothing else; the text lies ready on the host."""
    began = time.perf_counter()
    device = torch.device("cuda")
    built = build_model(recipe, recipe.vocab.size, device)
    plan = BatchPlan([shard], recipe.batch, 1)  # type: ignore[arg-type]
    passes = make_passes(built, recipe, plan)
    optimizer = Optimizer(built.flat, recipe.optim, built.rounded)
    batches = [plan.batch(plan.step(step), 0) for step in range(1, NUM_PIECES + 1)]
    pieces = [passes.piece(batch, 0) for batch in batches]
    tokens = statistics.fmean(batch.num_target_tokens for batch in batches)

    def step(number: int) -> None:
        piece = pieces[number % NUM_PIECES]
        passes.forward(piece, number, int(tokens))
        passes.backward()
        optimizer.update(1e-4)

    step(0)
    torch.cuda.synchronize()
    first_seconds = time.perf_counter() - began
    seconds = timed(step)
    size = size_of(recipe.model, recipe.vocab.size)
    flops = 6 * size.matrix_parameters * tokens / seconds
    result = {
        "benchmark": "train_gpu: bare step",
        "recipe": recipe.name,
        "kernels": built.kernels,
        "target_tokens_per_step": round(tokens),
        "step_ms": round(seconds * 1e3, 2),
        "target_tokens_per_second": round(tokens / seconds),
        "tflops": round(flops / 1e12, 1),
        "share_of_matrix_product": round(flops / product, 3),
        "matrix_product_tflops": round(product / 1e12, 1),
        "seconds_to_first_step": round(first_seconds, 1),
        "memory_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
    }
    if by_kernel:
        result["kernel_ms"] = kernel_groups(lambda: [step(number) for number in range(3)], GROUPS, 3)
    return result


def timed(step: Callable[[int], None]) -> float:
    """Median seconds between the ends of neighbouring steps."""
    for number in range(WARMUP):
        step(number)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(TIMED + 1)]
    events[0].record()
    for number in range(TIMED):
        step(number)
        events[number + 1].record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in pairwise(events)) / 1e3


def whole_loop(data: Path, tokens: int, product: float) -> dict[str, Any]:
    """`dragoman train base` as a user calls it, in a process of its own; then the bare step on the same text."""
    shards = open_shards(data)
    settings = [
        f"batch.target_tokens={tokens}", f"train.max_steps={LOOP_STEPS}", "evaluate.every_steps=100000",
        "checkpoint.every_steps=100000", "evaluate.decode=false",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "dragoman.cli", "train", "base", "--data", str(data), "--run", str(run)]
        began = time.time()
        subprocess.run(
            [*command, *(word for each in settings for word in ("--set", each))], check=True, stdout=sys.stderr
        )
        steps = read_lines(run / "steps.jsonl")
        timing = read_lines(run / "timing.rank-000.jsonl")
    counted = steps[LOOP_WARMUP:]
    # The last step also waits for the evaluation.
    seconds = counted[-2]["time"] - steps[LOOP_WARMUP - 1]["time"]
    speed = sum(step["target_tokens"] for step in counted[:-1]) / seconds
    bare = bare_step(sized("base", tokens, vocab_size=shards.manifest.vocab.size), shards.shards[0], product, False)
    return {
        "benchmark": "train_gpu: whole loop",
        "target_tokens_per_second": round(speed),
        "bare_target_tokens_per_second": bare["target_tokens_per_second"],
        "share_of_bare_step": round(speed / bare["target_tokens_per_second"], 3),
        "step_ms": round(seconds / (len(counted) - 1) * 1e3, 2),
        "seconds_to_first_step": round(steps[0]["time"] - began, 1),
        "usual_ms": usual_phases(timing[LOOP_WARMUP:-1]),
        "longest_ms": longest_steps(timing[LOOP_WARMUP:-1]),
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def usual_phases(timing: Sequence[dict[str, Any]]) -> dict[str, float]:
    names = [name for name in timing[0] if name.endswith("_seconds")]
    return {name.removesuffix("_seconds"): round(statistics.median(t[name] for t in timing) * 1e3, 3) for name in names}


def longest_steps(timing: Sequence[dict[str, Any]], number: int = 12) -> dict[int, float]:
    """What stalls: a mean far above the usual step is a few of these, or all of them."""
    longest = sorted(timing, key=lambda t: t["wall_seconds"], reverse=True)[:number]
    return {t["step"]: round(t["wall_seconds"] * 1e3, 1) for t in sorted(longest, key=lambda t: t["step"])}


def matrix_product_flops() -> float:
    width = 8_192
    left, right = (torch.randn(width, width, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * width**3 / timed(lambda _: torch.mm(left, right))


if __name__ == "__main__":
    main()
