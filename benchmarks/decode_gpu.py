"""Beam search on one GPU: a whole test set, the second time it is translated; and whether the CPU agrees.

    python benchmarks/decode_gpu.py MODEL --source FILE [--reference FILE] [--beam 4] [--cpu 200] [--torch] [--kernels]
    python benchmarks/decode_gpu.py --synthetic [--recipe base] [--sentences 2737] [--torch] [--kernels]

MODEL is a run, a checkpoint or an export. `--cpu N` also translates the first N sentences on the CPU: how many come out
the same, and BLEU of both on these. `--synthetic` needs no model: random weights, sentences of usual lengths, and every
batch is decoded for as many pieces as its longest source has, since random weights do not know when to end. `--torch`
takes torch's own operations instead of the fused kernels; `--kernels` says where the milliseconds go. One JSON line.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.data.vocab import EOS_ID
from dragoman.model.search import Found, SearchOptions, search
from dragoman.model.transformer import Transformer, initialize
from dragoman.recipe import load_recipe
from dragoman.score import quick_bleu_chrf
from dragoman.train.synthetic import FIRST_ID, MEDIAN_PIECES, SPREAD
from dragoman.translate import translator as translator_module
from dragoman.translate.translator import Translator
from gpu_state import around, kernel_groups

VOCAB_SIZE, BATCH_SENTENCES = 32_768, 512
GROUPS = (
    ("matrix products", r"nvjet|gemm|cutlass|splitK|cublas"),
    ("attention to the past", r"^past_attention"),
    ("attention to the source", r"^source_attention"),
    ("attention of the encoder", r"^attention_forward|flash|fmha"),
    ("best words", r"^best_words"),
    ("norm, residual", r"^norm_"),
    ("activation", r"^activation_"),
    ("sorting", r"[sS]ort|[tT]opK|topk"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--source", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--language", default="de", help="of the reference; decides how BLEU cuts words")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--sentences", type=int, help="only the first so many")
    parser.add_argument("--cpu", type=int, default=0, metavar="N", help="compare the first N with the CPU")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--torch", action="store_true", help="torch's own operations")
    parser.add_argument("--kernels", action="store_true", help="where the milliseconds go, by group of kernels")
    options = parser.parse_args()
    if options.synthetic:
        result = synthetic(options)
    elif options.model and options.source:
        result = real(options)
    else:
        parser.error("give a model and --source, or --synthetic")
    print(json.dumps({**result, **around()}))


def real(options: argparse.Namespace) -> dict[str, Any]:
    """Text in, text out, as `dragoman translate` does it."""
    lines = read_lines(options.source)[: options.sentences]
    translator = Translator(options.model, device="cuda")
    if options.torch:
        translator._kernels = "torch"
    meter = Meter()
    translator_module.search = meter.search

    def work() -> list[str]:
        return [best[0].text for best in translator.translate(lines, beam=options.beam)]

    result, texts = twice(work, meter, len(lines), options.kernels)
    if options.reference is not None:
        references = read_lines(options.reference)[: options.sentences]
        result["bleu"] = bleu(texts, references, options.language)
        if options.cpu:
            result["bleu_of_first"] = bleu(texts[: options.cpu], references[: options.cpu], options.language)
    if options.cpu:
        began = time.perf_counter()
        on_cpu = Translator(options.model, device="cpu").translate(lines[: options.cpu], beam=options.beam)
        result["cpu_seconds"] = round(time.perf_counter() - began, 1)
        cpu_texts = [best[0].text for best in on_cpu]
        same = sum(mine == theirs for mine, theirs in zip(texts, cpu_texts, strict=False))
        result["same_as_cpu"] = round(same / len(cpu_texts), 4)
        if options.reference is not None:
            result["bleu_of_first_on_cpu"] = bleu(cpu_texts, references[: options.cpu], options.language)
    parameters = sum(parameter.numel() for parameter in translator.engine.model.parameters())
    return {"benchmark": "decode_gpu", "model": str(options.model), "parameters": parameters, **result}


def synthetic(options: argparse.Namespace) -> dict[str, Any]:
    """Ids in, ids out."""
    config = load_recipe(options.recipe).model
    model = Transformer(config, VOCAB_SIZE)
    initialize(model, 1)
    model.to("cuda").eval()
    random = np.random.default_rng(1)
    lengths = MEDIAN_PIECES * np.exp(SPREAD * random.standard_normal(options.sentences or 2_737))
    lengths = np.sort(lengths.clip(1, 200).astype(int))[::-1]
    sources = [[*random.integers(FIRST_ID, VOCAB_SIZE, length).tolist(), EOS_ID] for length in lengths]
    asked = SearchOptions(beam=options.beam, kernels="torch" if options.torch else "auto")
    meter = Meter()

    def work() -> list[list[Found]]:
        found: list[list[Found]] = []
        for first in range(0, len(sources), BATCH_SENTENCES):
            batch = sources[first : first + BATCH_SENTENCES]
            found += meter.search(model, batch, EOS_ID, replace(asked, max_length=len(batch[0])))
        return found

    result, _ = twice(work, meter, len(sources), options.kernels)
    name = f"{options.recipe}, random weights"
    size = sum(parameter.numel() for parameter in model.parameters())
    return {"benchmark": "decode_gpu: synthetic", "model": name, "parameters": size, **result}


class Meter:
    """Seconds that searches take, and what they find."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.num_pieces = 0

    def search(
        self, model: Transformer, sources: Sequence[Sequence[int]], eos_id: int, options: SearchOptions
    ) -> list[list[Found]]:
        began = time.perf_counter()
        found = search(model, sources, eos_id, options)
        self.seconds += time.perf_counter() - began
        self.num_pieces += sum(len(best[0].ids) + 1 for best in found)
        return found


def twice(work: Callable[[], Any], meter: Meter, num_sentences: int, by_kernel: bool) -> tuple[dict[str, Any], Any]:
    """The first pass compiles, allocates and records graphs; the second one counts."""
    began = time.perf_counter()
    work()
    first = time.perf_counter() - began
    meter.seconds, meter.num_pieces = 0.0, 0
    began = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - began
    result = {
        "sentences": num_sentences,
        "seconds": round(seconds, 3),
        "search_seconds": round(meter.seconds, 3),
        "first_pass_seconds": round(first, 1),
        "sentences_per_second": round(num_sentences / seconds),
        "target_pieces_per_second": round(meter.num_pieces / seconds),
        "target_pieces": meter.num_pieces,
        "memory_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
        "reserved_gb": round(torch.cuda.max_memory_reserved() / 1e9, 2),
    }
    if by_kernel:
        result["kernel_ms"] = kernel_groups(work, GROUPS)
    return result, found


def bleu(texts: Sequence[str], references: Sequence[str], language: str) -> float:
    return round(quick_bleu_chrf(list(texts), list(references), language).bleu, 2)


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


if __name__ == "__main__":
    main()
