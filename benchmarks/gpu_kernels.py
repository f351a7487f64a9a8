"""How close each fused kernel that moves bytes comes to a plain copy, on one GPU.

    python benchmarks/gpu_kernels.py [--tokens 25248] [--recipe base] [--sweep]

A kernel's bytes are what it must read and write at the least. Several sets of buffers take turns, so that caches hold
nothing of the last call; calls are replayed from a graph, so that launching costs nothing. `--sweep` tries tiles, warps,
programs and stages of the backward norm. One JSON line each.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from dragoman.config import Recipe
from dragoman.data.batches import BatchPlan
from dragoman.model.fused import loss as loss_module
from dragoman.model.fused import norm as norm_module
from dragoman.model.fused.activation import activate
from dragoman.model.fused.attention import self_attention
from dragoman.model.fused.batch import PackedBatch
from dragoman.model.fused.dropout import Dropout
from dragoman.model.fused.norm import add_norm
from dragoman.model.fused.weight import Norm, Weight
from dragoman.model.fused.words import Sentences, pack
from dragoman.model.size import LOSS_CHUNK_TOKENS
from dragoman.recipe import load_recipe
from dragoman.train.slots import usual_slots
from dragoman.train.synthetic import SyntheticShard
from gpu_state import around

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # the latter by Triton's interpreter, to try this
HALF = torch.bfloat16
SETS, CALLS, REPLAYS = 4, 24, 5
NOBODY: Any = SimpleNamespace(add_sums=lambda *_: None)  # partial sums are folded elsewhere

Call = Callable[[int], Any]  # with the number of the set of buffers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=25_248)
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--sweep", action="store_true", help="settings of the backward norm")
    options = parser.parse_args()
    recipe = load_recipe(options.recipe)
    copied = [half(options.tokens, recipe.model.d_ffn) for _ in range(2 * SETS)]
    copy = measured("copy", lambda number: copied[number].copy_(copied[SETS + number]), 2 * copied[0].nbytes)
    print(json.dumps({**copy, **around()}))
    for line in kernels(recipe, options.tokens):
        print(json.dumps({**line, "share_of_copy": round(line["gb_per_second"] / copy["gb_per_second"], 3)}))
    if options.sweep:
        for line in sweep(recipe, options.tokens):
            print(json.dumps(line))


def kernels(recipe: Recipe, num_tokens: int) -> Iterator[dict[str, Any]]:
    width, wide = recipe.model.d_model, recipe.model.d_ffn
    forward, backward = norm_calls(num_tokens, width)
    yield measured("norm forward", forward, 8 * num_tokens * width)
    yield measured("norm backward", backward, 10 * num_tokens * width)
    forward, backward = activation_calls(num_tokens, wide, recipe.model.activation)
    yield measured("activation forward", forward, 4 * num_tokens * wide)
    yield measured("activation backward", backward, 6 * num_tokens * wide)
    rows = min(LOSS_CHUNK_TOKENS, num_tokens)
    yield measured("loss", loss_call(rows, recipe.vocab.size), 6 * rows * recipe.vocab.size)
    batch = packed_batch(recipe, num_tokens)
    forward, backward = attention_calls(batch, recipe)
    tokens = batch.slots.target
    yield measured("attention forward", forward, 8 * tokens * width)
    yield measured("attention backward", backward, 16 * tokens * width)


def sweep(recipe: Recipe, num_tokens: int) -> Iterator[dict[str, Any]]:
    width = recipe.model.d_model
    for (tile, warps), programs, stages in itertools.product(((2_048, 4), (4_096, 8)), (264, 528), (1, 2, 3)):
        norm_module.TILE, norm_module.NUM_WARPS, norm_module.NORM_PROGRAMS = tile, warps, programs
        norm_module.STAGES = stages
        forward, backward = norm_calls(num_tokens, width)
        settings = {"tile": tile, "warps": warps, "programs": programs, "stages": stages}
        yield {**measured("norm backward", backward, 10 * num_tokens * width), **settings}
        if (programs, stages) == (528, 1):
            yield {**measured("norm forward", forward, 8 * num_tokens * width), **settings}


def norm_calls(num_tokens: int, width: int) -> tuple[Call, Call]:
    x, change, dsum, dnormed = ([half(num_tokens, width, grad=n < 2) for _ in range(SETS)] for n in range(4))
    bias, scale, shift = (weight(width) for _ in range(3))

    def forward(number: int) -> tuple[torch.Tensor, torch.Tensor]:
        return add_norm(x[number], change[number], bias, Norm(scale, shift), dropout())

    outputs = [forward(number) for number in range(SETS)]

    def backward(number: int) -> Any:
        inputs, gradients = (x[number], change[number]), (dsum[number], dnormed[number])
        return torch.autograd.grad(outputs[number], inputs, gradients, retain_graph=True)

    return forward, backward


def activation_calls(num_tokens: int, width: int, kind: str) -> tuple[Call, Call]:
    u, dh = ([half(num_tokens, width, grad=n < 1) for _ in range(SETS)] for n in range(2))
    bias = weight(width)

    def forward(number: int) -> torch.Tensor:
        return activate(u[number], bias, kind, dropout())

    outputs = [forward(number) for number in range(SETS)]

    def backward(number: int) -> Any:
        return torch.autograd.grad(outputs[number], u[number], dh[number], retain_graph=True)

    return forward, backward


def loss_call(num_rows: int, vocab_size: int) -> Call:
    logits = [half(num_rows, vocab_size) for _ in range(2)]
    labels = torch.randint(vocab_size, (num_rows,), device=DEVICE, dtype=torch.int32)
    losses = torch.empty(2, num_rows, device=DEVICE)
    ones = torch.ones(num_rows, device=DEVICE)

    def call(number: int) -> None:
        loss_module.loss_rows[(num_rows,)](
            logits[number % 2], labels, ones, ones, losses[0], losses[1], vocab_size, vocab_size, 0.1,
            BLOCK=loss_module.BLOCK, GRADIENT=True, num_warps=loss_module.NUM_WARPS,
        )  # fmt: skip

    return call


def attention_calls(batch: PackedBatch, recipe: Recipe) -> tuple[Call, Call]:
    tokens, width, heads = batch.slots.target, recipe.model.d_model, recipe.model.num_heads
    qkv = [half(tokens, 3 * width, grad=True) for _ in range(SETS)]
    dout = [half(tokens, width) for _ in range(SETS)]
    bias = weight(3 * width)

    def forward(number: int) -> torch.Tensor:
        return self_attention(qkv[number], heads, batch.among_target, bias)

    outputs = [forward(number) for number in range(SETS)]

    def backward(number: int) -> Any:
        return torch.autograd.grad(outputs[number], qkv[number], dout[number], retain_graph=True)

    return forward, backward


def packed_batch(recipe: Recipe, num_tokens: int) -> PackedBatch:
    """Sentences of usual lengths, about so many target tokens."""
    settings = recipe.batch.model_copy(update={"target_tokens": num_tokens, "num_microbatches": 1})
    shard = SyntheticShard(recipe.model_copy(update={"batch": settings}))
    plan = BatchPlan([shard], settings, 1)  # type: ignore[arg-type]
    batch = plan.batch(plan.step(1), 0)
    slots = usual_slots(plan)
    assert batch is not None
    words = pack(
        Sentences(batch.source_ids, batch.source_lengths, batch.input_ids, batch.target_ids, batch.target_lengths),
        slots,
    )
    assert words is not None
    return PackedBatch(torch.from_numpy(words).to(DEVICE), slots)


def half(rows: int, columns: int, grad: bool = False) -> torch.Tensor:
    return torch.randn(rows, columns, device=DEVICE, dtype=HALF, requires_grad=grad)


def weight(width: int) -> Weight:
    values = torch.randn(width, device=DEVICE)
    return Weight(values, values.to(HALF), torch.zeros_like(values), NOBODY)


def dropout() -> Dropout:
    return Dropout(0.1, 1, torch.from_numpy(np.array([1, 2], dtype=np.int32)).to(DEVICE))


def measured(name: str, call: Call, num_bytes: int) -> dict[str, Any]:
    seconds = seconds_of(call)
    gb_per_second = round(num_bytes / seconds / 1e9)
    return {"benchmark": "gpu_kernels", "kernel": name, "us": round(seconds * 1e6, 1), "gb_per_second": gb_per_second}


def seconds_of(call: Call) -> float:
    """Of one call, the median over replays of a graph of many."""
    call(0)
    if DEVICE.type != "cuda":
        began = time.perf_counter()
        call(1)
        return time.perf_counter() - began
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        call(0)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        kept = [call(number % SETS) for number in range(CALLS)]  # what they return must not share memory
    moments = [torch.cuda.Event(enable_timing=True) for _ in range(REPLAYS + 1)]
    graph.replay()
    for moment in moments[:-1]:
        moment.record()
        graph.replay()
    moments[-1].record()
    torch.cuda.synchronize()
    del kept
    return statistics.median(a.elapsed_time(b) for a, b in itertools.pairwise(moments)) / 1e3 / CALLS


if __name__ == "__main__":
    main()
