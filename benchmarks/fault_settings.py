"""What a campaign trains: a tiny model on embedded sentences, a run of half a minute."""

import subprocess
import sys
from pathlib import Path

from dragoman.data.phrasebook.generate import phrasebook

METHODS = {
    "dense": ("sync.method=dense",),
    "dense-bf16": ("sync.method=dense", "sync.precision=bf16"),
    "int8": ("sync.method=int8",),
    "powersgd": ("sync.method=powersgd", "sync.dense_steps=4"),
    "diloco": ("sync.method=diloco",),
}
HANG_SECONDS = 24  # more than the silence after which a host counts as gone
TINY = (
    "vocab.size=600",
    "model.d_model=32",
    "model.num_heads=2",
    "model.d_ffn=64",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.dropout=0.1",
    "model.ffn_dropout=0.1",
    "batch.target_tokens=600",
    "batch.num_microbatches=6",
    "batch.max_pieces=60",
    "optim.warmup_steps=10",
    "train.log_every=5",
    f"train.hang_minutes={HANG_SECONDS / 60}",
    "evaluate.every_steps=1000000",
    "evaluate.decode=false",
    "evaluate.train_pairs=0",
)


def settings_of(method: str, max_steps: int, every_steps: int) -> list[str]:
    """As words of a command line."""
    chosen = (*TINY, *METHODS[method], f"train.max_steps={max_steps}", f"checkpoint.every_steps={every_steps}")
    return [word for setting in chosen for word in ("--set", setting)]


def prepare_data(folder: Path) -> Path:
    """2,000 embedded sentences, prepared once."""
    data = folder / "data"
    if (data / "manifest.json").exists():
        return data
    folder.mkdir(parents=True, exist_ok=True)
    book = phrasebook(num_train=2_000, num_dev=40, num_test=40)
    words: list[str] = []
    for split, prefix in (("train", ""), ("dev", "dev-"), ("test", "test-")):
        for side, option in (("source", "en"), ("target", "de")):
            path = folder / f"{split}.{option}"
            path.write_text("".join(f"{getattr(pair, side)}\n" for pair in getattr(book, split)), encoding="utf-8")
            words += [f"--{prefix}{side}", str(path)]
    command = ["prepare", "phrasebook", "--languages", "en-de", *words, "--out", str(data), "--set", TINY[0]]
    subprocess.run([sys.executable, "-m", "dragoman", *command], check=True, stdout=sys.stderr)
    return data
