"""Beam search on the CPU beside CTranslate2 float32: same weights, sentences, beam and threads.

    python benchmarks/decode_cpu.py --run RUN --source FILE [--beam 4] [--threads 2] [--sentences 500] [--rounds 3]
    python benchmarks/decode_cpu.py --recipe base --data DIR --source FILE ...   random weights, 30 pieces out

CTranslate2 sorts and batches by itself (max_batch_size in tokens, the same number). Prints one JSON line.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--recipe")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)

    import ctranslate2
    import torch

    from dragoman.translate.engine import BATCH_TOKENS
    from dragoman.translate.export.ctranslate2 import to_ctranslate2
    from dragoman.translate.translator import Translator

    torch.set_num_threads(options.threads)
    lines = options.source.read_text(encoding="utf-8").splitlines()[: options.sentences]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = options.run or random_model(options.recipe, options.data, folder / "random")
        max_length = 256 if options.run else 30
        ours = Translator(run)
        vocab = ours.engine.vocab
        to_ctranslate2(ours.engine.model, vocab, folder / "ct2")
        theirs = ctranslate2.Translator(str(folder / "ct2"), inter_threads=1, intra_threads=options.threads)
        pieces = [[vocab.pieces[i] for i in vocab.encode_source(line)[0]] for line in lines]
        settings = {"beam_size": options.beam, "max_decoding_length": max_length, "length_penalty": 1.0}
        batching = {"max_batch_size": BATCH_TOKENS // options.beam, "batch_type": "tokens"}
        rates: dict[str, list[float]] = {"dragoman": [], "ctranslate2": []}
        for _ in range(options.rounds):
            start = time.perf_counter()
            mine = ours.translate(lines, beam=options.beam, length_penalty=1.0, max_length=max_length)
            rates["dragoman"].append(len(lines) / (time.perf_counter() - start))
            start = time.perf_counter()
            other = theirs.translate_batch(pieces, **settings, **batching)
            rates["ctranslate2"].append(len(lines) / (time.perf_counter() - start))
        texts = [vocab.decode([[vocab.processor.piece_to_id(p) for p in o.hypotheses[0]]])[0] for o in other]
        same = sum(m[0].text == t for m, t in zip(mine, texts, strict=True)) / len(lines)
    medians = {key: statistics.median(values) for key, values in rates.items()}
    print(
        json.dumps(
            {
                "benchmark": "decode_cpu",
                "model": str(options.run.name) if options.run else f"{options.recipe}, random weights",
                "parameters": sum(p.numel() for p in ours.engine.model.parameters()),
                "sentences_per_second": {key: round(value, 1) for key, value in medians.items()},
                "all_rounds": {key: [round(v, 1) for v in values] for key, values in rates.items()},
                "ratio": round(medians["dragoman"] / medians["ctranslate2"], 2),
                "same_translations": round(same, 3),
                "beam": options.beam,
                "threads": options.threads,
                "sentences": len(lines),
                "machine": platform.processor() or platform.machine(),
                "versions": {"torch": torch.__version__, "ctranslate2": ctranslate2.__version__},
                "time": time.strftime("%Y-%m-%d %H:%M"),
            }
        )
    )


def random_model(recipe_name: str, data: Path, folder: Path) -> Path:
    """A checkpoint of a recipe's size. Its translations mean nothing, so their length is fixed."""
    import shutil

    import tomli_w

    from dragoman.data.shards import open_shards
    from dragoman.model.transformer import Transformer, initialize
    from dragoman.model.weights import save_tensors
    from dragoman.recipe import load_recipe

    recipe, shards = load_recipe(recipe_name), open_shards(data)
    model = Transformer(recipe.model, shards.manifest.vocab.size)
    initialize(model, 1)
    folder.mkdir()
    save_tensors(dict(model.state_dict()), folder / "weights.safetensors")
    (folder / "recipe.toml").write_text(tomli_w.dumps(recipe.model_dump(exclude_none=True)))
    shutil.copyfile(shards.vocab_path, folder / "vocab.model")
    return folder


if __name__ == "__main__":
    main()
