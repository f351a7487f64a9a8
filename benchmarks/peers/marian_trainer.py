"""Transformer-base as MarianMT under the Hugging Face Seq2SeqTrainer; started by peers_gpu.py, which reads its log.

Batches hold a fixed number of pairs of similar length, which is how the Trainer buckets: it has no token batches.
The clock starts and stops with the GPU idle; tokens are the labels that count in the loss, so EOS yes and padding no.
With `--compile`, steps in which torch compiled once more are left out, a few at a time: in a long run they are rare.
"""

import argparse
import inspect
import json
import time
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.utils
from transformers import MarianConfig, MarianMTModel, Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

UNK, PAD, BOS, EOS = range(4)
IGNORED = -100  # a label that the loss leaves out
# Of one function, which all layers share: with torch's own limit of 8 they fall back to what is not compiled.
MOST_COMPILATIONS = 64
STEPS_AT_ONCE = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=json.loads, required=True)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    settings = options.settings
    torch._dynamo.config.recompile_limit = MOST_COMPILATIONS
    texts = Pairs(Path(settings["work"]))
    clock = Clock(settings["trainer_warmup"], settings["trainer_steps"])
    trainer = CountingTrainer(
        model=marian(settings, len(texts.ids)),
        args=arguments(settings, options.compile),
        train_dataset=texts,
        data_collator=padded,
        callbacks=[clock],
    )
    clock.trainer = trainer
    trainer.train()


class Pairs(torch.utils.data.Dataset):
    def __init__(self, work: Path) -> None:
        self.ids = {word: i for i, word in enumerate((work / "vocab.joeynmt").read_text().splitlines())}
        self.sources = self.encode(work / "text.src")
        self.targets = self.encode(work / "text.tgt")

    def encode(self, path: Path) -> list[list[int]]:
        with path.open() as lines:
            return [[*(self.ids.get(word, UNK) for word in line.split()), EOS] for line in lines]

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"input_ids": self.sources[i], "labels": self.targets[i], "length": len(self.sources[i])}


def marian(settings: dict[str, Any], num_words: int) -> MarianMTModel:
    layers, heads, ffn = settings["layers"], settings["heads"], settings["ffn"]
    config = MarianConfig(
        vocab_size=-(-num_words // 8) * 8, d_model=settings["hidden"], max_position_embeddings=256,
        encoder_layers=layers, encoder_attention_heads=heads, encoder_ffn_dim=ffn,
        decoder_layers=layers, decoder_attention_heads=heads, decoder_ffn_dim=ffn,
        activation_function="relu", scale_embedding=True, dropout=0.1, activation_dropout=0.1, attention_dropout=0.0,
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, decoder_start_token_id=PAD, forced_eos_token_id=EOS,
    )  # fmt: skip
    return MarianMTModel(config)


def arguments(settings: dict[str, Any], compiled: bool) -> Seq2SeqTrainingArguments:
    known = inspect.signature(Seq2SeqTrainingArguments).parameters
    by_length = {"group_by_length": True}  # its name until transformers 5
    if "group_by_length" not in known:
        by_length = {"train_sampling_strategy": "group_by_length"}
    return Seq2SeqTrainingArguments(
        output_dir=f"{settings['work']}/huggingface_out", max_steps=settings["trainer_steps"],
        per_device_train_batch_size=settings["batch_pairs"], dataloader_num_workers=settings["workers"],
        bf16=settings["cuda"], use_cpu=not settings["cuda"], torch_compile=compiled, optim="adamw_torch_fused",
        label_smoothing_factor=0.1, logging_steps=20, save_strategy="no", report_to=[], remove_unused_columns=False,
        dataloader_persistent_workers=True,  # no new workers in mid-measurement: an epoch is only 101 steps
        disable_tqdm=True, **by_length,
    )  # fmt: skip


def padded(pairs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    sources = matrix([pair["input_ids"] for pair in pairs], PAD)
    labels = matrix([pair["labels"] for pair in pairs], IGNORED)
    start = torch.full((len(pairs), 1), PAD)
    inputs = torch.cat([start, labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, PAD)], dim=1)
    return {
        "input_ids": sources,
        "attention_mask": (sources != PAD).long(),
        "decoder_input_ids": inputs,
        "labels": labels,
    }


def matrix(rows: list[list[int]], filler: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])


class CountingTrainer(Seq2SeqTrainer):
    """Counts where the labels already are, without waiting for the GPU: one small kernel a step."""

    target_tokens: torch.Tensor | int = 0

    def training_step(self, model: torch.nn.Module, inputs: dict[str, Any], *rest: Any, **named: Any) -> torch.Tensor:
        self.target_tokens = self.target_tokens + (inputs["labels"] != IGNORED).sum()
        return super().training_step(model, inputs, *rest, **named)


class Clock(TrainerCallback):
    trainer: CountingTrainer

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.before = (0, 0.0, 0)
        self.measured = {"steps": 0, "tokens": 0, "seconds": 0.0}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step = state.global_step
        if step < self.first or (step - self.first) % STEPS_AT_ONCE:
            return
        now = (int(self.trainer.target_tokens), idle_time(), num_compiled())
        tokens, seconds, compiled = (new - old for new, old in zip(now, self.before, strict=True))
        self.before = now
        if step > self.first and not compiled:
            self.measured["steps"] += STEPS_AT_ONCE
            self.measured["tokens"] += tokens
            self.measured["seconds"] += seconds
        if step == self.last:
            print("measured", json.dumps(self.measured), flush=True)


def num_compiled() -> int:
    """Frames of Python that torch has compiled so far."""
    return torch._dynamo.utils.counters["frames"]["total"]


def idle_time() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
