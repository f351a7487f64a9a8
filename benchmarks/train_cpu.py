"""Training speed on the CPU beside JoeyNMT and a Hugging Face Marian model: same model, text, threads and batch size.

    python benchmarks/train_cpu.py --data DIR [--steps 60] [--threads 2] [--rounds 3]

DIR is a folder made by `dragoman prepare tiny`. All three train the recipe `tiny` with dropout 0.1 and label smoothing 0.1
on token batches of about 4,096 target tokens, bucketed by length. Real target tokens are counted: EOS yes, padding no.
JoeyNMT 2.3 and transformers must be importable; a peer that is not is left out and named. Prints one JSON line.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BATCH_TOKENS = 4096
WARMUP_STEPS = 10
MAX_PIECES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["dragoman", "marian", "joeynmt"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    if options.only == "marian":
        print(json.dumps(train_marian(options.data, options.steps, options.threads)))
        return
    speeds: dict[str, list[float]] = {}
    for _ in range(options.rounds):  # interleaved, so that a busy minute hurts all alike
        speeds.setdefault("dragoman", []).append(train_dragoman(options.data, options.steps))
        if importlib.util.find_spec("transformers"):
            speeds.setdefault("marian", []).append(run_self("marian", options))
        if importlib.util.find_spec("joeynmt"):
            speeds.setdefault("joeynmt", []).append(train_joeynmt(options.data, options.steps))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    peers = {name: value for name, value in medians.items() if name != "dragoman"}
    print(
        json.dumps(
            {
                "benchmark": "train_cpu",
                "target_tokens_per_second": {name: round(value) for name, value in medians.items()},
                "all_rounds": {name: [round(v) for v in values] for name, values in speeds.items()},
                "ratio_to_best_peer": round(medians["dragoman"] / max(peers.values()), 2) if peers else None,
                "left_out": [name for name in ("marian", "joeynmt") if name not in medians],
                "threads": options.threads,
                "steps": options.steps,
                "machine": platform.processor() or platform.machine(),
                "versions": {n: _version(n) for n in ("torch", "transformers", "joeynmt")},
                "time": time.strftime("%Y-%m-%d %H:%M"),
            }
        )
    )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def run_self(peer: str, options: argparse.Namespace) -> float:
    """A fresh process, so that no peer inherits another's threads or memory."""
    command = [sys.executable, __file__, "--data", str(options.data), "--steps", str(options.steps)]
    done = subprocess.run(
        [*command, "--threads", str(options.threads), "--only", peer], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def train_dragoman(data: Path, steps: int) -> float:
    """The whole loop as a user runs it: records, TensorBoard and progress included."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        settings = [f"train.max_steps={steps}", "evaluate.decode=false", f"batch.target_tokens={BATCH_TOKENS}"]
        settings += ["batch.num_microbatches=2", "evaluate.train_pairs=0"]
        settings += ["model.dropout=0.1", "model.ffn_dropout=0.1", f"batch.max_pieces={MAX_PIECES}"]
        changes = [part for setting in settings for part in ("--set", setting)]
        command = [sys.executable, "-m", "dragoman.cli", "train", "tiny", "--data", str(data), "--run", str(run)]
        subprocess.run([*command, *changes], check=True, capture_output=True)
        lines = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()][WARMUP_STEPS:-1]
        return sum(line["target_tokens"] for line in lines) / sum(line["step_seconds"] for line in lines)


def bucketed_batches(data: Path) -> list[list[tuple[list[int], list[int]]]]:
    """Token batches of similar lengths: pools of 100 batches sorted by length, batches shuffled."""
    from dragoman.data.shards import open_shards

    shard = open_shards(data).shards[0]
    order = [i for i in range(shard.num_pairs) if shard.lengths[i].max() <= MAX_PIECES + 1]
    random.Random(1).shuffle(order)
    batches: list[list[tuple[list[int], list[int]]]] = []
    pool = 20_000
    for first in range(0, len(order), pool):
        part = sorted(order[first : first + pool], key=lambda i: (int(shard.lengths[i, 1]), int(shard.lengths[i, 0])))
        made: list[list[tuple[list[int], list[int]]]] = [[]]
        size = 0
        for i in part:
            if size + int(shard.lengths[i, 1]) > BATCH_TOKENS:
                made.append([])
                size = 0
            made[-1].append((shard.source(i).tolist(), shard.target(i).tolist()))
            size += int(shard.lengths[i, 1])
        random.Random(first).shuffle(made)
        batches += made
    return batches


def train_marian(data: Path, steps: int, threads: int) -> float:
    """A plain loop around MarianMTModel, padded batches, fused AdamW."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    from dragoman.data.shards import open_shards
    from dragoman.recipe import load_recipe

    torch.set_num_threads(threads)
    size, recipe = open_shards(data).manifest.vocab.size, load_recipe("tiny").model
    config = MarianConfig(
        vocab_size=size, d_model=recipe.d_model, encoder_layers=recipe.num_encoder_layers,
        decoder_layers=recipe.num_decoder_layers, encoder_attention_heads=recipe.num_heads,
        decoder_attention_heads=recipe.num_heads, encoder_ffn_dim=recipe.d_ffn, decoder_ffn_dim=recipe.d_ffn,
        max_position_embeddings=256, activation_function="relu", dropout=0.1, attention_dropout=0.0,
        activation_dropout=0.1, pad_token_id=1, eos_token_id=2, bos_token_id=0, decoder_start_token_id=2,
        scale_embedding=True,
    )  # fmt: skip
    model = MarianMTModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=-100)
    tokens = seconds = 0.0
    for step, batch in enumerate(bucketed_batches(data)[:steps]):
        start = time.perf_counter()
        sources, targets = zip(*batch, strict=True)
        source = _padded(sources, 1)
        labels = _padded(targets, -100)
        inputs = torch.cat([torch.full((len(labels), 1), 2), labels[:, :-1].clamp(min=1)], dim=1)
        logits = model(input_ids=source, attention_mask=(source != 1).long(), decoder_input_ids=inputs).logits
        loss = criterion(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        if step >= WARMUP_STEPS:
            tokens += sum(map(len, targets))
            seconds += time.perf_counter() - start
    return tokens / seconds


def _padded(rows: tuple[list[int], ...], value: int):  # noqa: ANN202
    import torch

    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


JOEYNMT = """
name: "speed"
joeynmt_version: "2.3.0"
model_dir: "{folder}/model"
use_cuda: False
fp16: False
random_seed: 42
data:
    train: "{folder}/train"
    dev: "{folder}/dev"
    dataset_type: "plain"
    src: {{lang: "src", max_length: 120, level: "word", voc_file: "{folder}/vocab", tokenizer_cfg: {{pretokenizer: "none"}}}}
    trg: {{lang: "tgt", max_length: 120, level: "word", voc_file: "{folder}/vocab", tokenizer_cfg: {{pretokenizer: "none"}}}}
    special_symbols: {{unk_token: "<unk>", pad_token: "<pad>", bos_token: "<s>", eos_token: "</s>", unk_id: 0, pad_id: 1, bos_id: 2, eos_id: 3}}
testing: {{beam_size: 1, batch_size: 10, batch_type: "sentence", eval_metrics: ["bleu"], max_output_length: 20}}
training:
    optimizer: "adamw"
    adam_betas: [0.9, 0.98]
    learning_rate: 0.0001
    scheduling: "warmupinversesquareroot"
    learning_rate_warmup: 4000
    clip_grad_norm: 1.0
    loss: "crossentropy"
    label_smoothing: 0.1
    batch_size: {tokens}
    batch_type: "token"
    batch_multiplier: 1
    normalization: "tokens"
    epochs: 1
    updates: {steps}
    validation_freq: 100000
    logging_freq: 1
    early_stopping_metric: "loss"
    shuffle: False
    overwrite: True
    keep_best_ckpts: 1
model:
    initializer: "xavier_uniform"
    embed_initializer: "xavier_uniform"
    tied_embeddings: True
    tied_softmax: True
    encoder: {{type: "transformer", num_layers: 3, num_heads: 4, embeddings: {{embedding_dim: 256, scale: True}}, hidden_size: 256, ff_size: 1024, dropout: 0.1, layer_norm: "pre"}}
    decoder: {{type: "transformer", num_layers: 3, num_heads: 4, embeddings: {{embedding_dim: 256, scale: True}}, hidden_size: 256, ff_size: 1024, dropout: 0.1, layer_norm: "pre"}}
"""


def train_joeynmt(data: Path, steps: int) -> float:
    """Pieces as words, already bucketed by length, read in order; speed as JoeyNMT reports it, step by step."""
    from dragoman.data.shards import open_shards

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = open_shards(data).manifest.vocab.size
        words = ["<unk>", "<pad>", "<s>", "</s>", *(f"w{i}" for i in range(size))]
        (folder / "vocab").write_text("\n".join(words) + "\n")
        pairs = [pair for batch in bucketed_batches(data)[: steps + 5] for pair in batch]
        for side, ending in ((0, "src"), (1, "tgt")):
            text = "".join(" ".join(f"w{i}" for i in pair[side][:-1]) + "\n" for pair in pairs)
            (folder / f"train.{ending}").write_text(text)
            (folder / f"dev.{ending}").write_text("".join(text.splitlines(keepends=True)[:20]))
        (folder / "config.yaml").write_text(JOEYNMT.format(folder=folder, steps=steps, tokens=BATCH_TOKENS))
        done = subprocess.run(
            [sys.executable, "-m", "joeynmt", "train", str(folder / "config.yaml"), "--skip-test"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        rates = [float(rate) for rate in re.findall(r"Tokens per Sec:\s*([\d.]+)", done.stdout + done.stderr)]
        if len(rates) <= WARMUP_STEPS:
            sys.exit(f"JoeyNMT failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return statistics.mean(rates[WARMUP_STEPS:])


if __name__ == "__main__":
    main()
