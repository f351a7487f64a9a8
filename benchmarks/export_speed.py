"""What an export is worth on a CPU: the same model, sentences, beam and threads by four engines, in turns.

    python benchmarks/export_speed.py --run RUN --ctranslate2 DIR --huggingface DIR --source FILE --target FILE
                                      [--beam 4] [--threads 2] [--sentences 64] [--rounds 3]

Hugging Face's `generate` gets the sentences sorted by length, in batches of the size that is best of a few; BLEU says that all do
the same. The first round of each warms up and is not counted. Prints one JSON line.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HF_BATCHES = (8, 16, 32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("run", "ctranslate2", "huggingface", "source", "target"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    sources, references = (
        path.read_text(encoding="utf-8").splitlines()[: options.sentences] for path in (options.source, options.target)
    )
    engines = {
        "dragoman_torch": by_translator(options.run, options),
        "dragoman_int8": by_translator(options.ctranslate2, options),
        **{f"huggingface_generate_{size}": by_generate(options.huggingface, options, size) for size in HF_BATCHES},
    }
    rates: dict[str, list[float]] = {name: [] for name in engines}
    texts: dict[str, list[str]] = {}
    for number in range(options.rounds + 1):
        for name, translate in engines.items():
            start = time.perf_counter()
            texts[name] = translate(sources)
            if number:
                rates[name].append(len(sources) / (time.perf_counter() - start))
    print(json.dumps(summary(options, rates, texts, references)))


def by_translator(model: Path, options: argparse.Namespace) -> Callable[[list[str]], list[str]]:
    from dragoman import Translator

    translator = Translator(model, device="cpu", threads=options.threads)
    return lambda lines: [best[0].text for best in translator.translate(lines, beam=options.beam)]


def by_generate(folder: Path, options: argparse.Namespace, size: int) -> Callable[[list[str]], list[str]]:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    torch.set_num_threads(options.threads)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    def translate(lines: list[str]) -> list[str]:
        order = sorted(range(len(lines)), key=lambda i: -len(lines[i]))
        found: dict[int, str] = {}
        for first in range(0, len(order), size):
            places = order[first : first + size]
            inputs: Any = tokenizer([lines[i] for i in places], return_tensors="pt", padding=True)
            with torch.inference_mode():
                ids = model.generate(**inputs, num_beams=options.beam)
            found |= dict(zip(places, tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True))
        return [found[i] for i in range(len(lines))]

    return translate


def summary(
    options: argparse.Namespace, rates: dict[str, list[float]], texts: dict[str, list[str]], references: list[str]
) -> dict[str, Any]:
    from dragoman.score import quick_bleu_chrf

    medians = {name: statistics.median(values) for name, values in rates.items()}
    best_generate = max(value for name, value in medians.items() if name.startswith("huggingface"))
    return {
        "benchmark": "export_speed",
        "cpu": platform.processor() or platform.machine(),
        "load": os.getloadavg()[0],
        "beam": options.beam,
        "threads": options.threads,
        "sentences": len(references),
        "sentences_per_second": {name: [round(value, 2) for value in values] for name, values in rates.items()},
        "bleu": {name: round(quick_bleu_chrf(lines, references).bleu, 2) for name, lines in texts.items()},
        "int8_over_generate": round(medians["dragoman_int8"] / best_generate, 2),
        "int8_over_torch": round(medians["dragoman_int8"] / medians["dragoman_torch"], 2),
    }


if __name__ == "__main__":
    main()
