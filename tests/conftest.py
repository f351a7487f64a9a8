"""What all tests share: small data made once, and the settings of a run that takes seconds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

TINY_RUN = [
    "vocab.size=600",
    "model.d_model=32",
    "model.num_heads=2",
    "model.d_ffn=64",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.dropout=0.1",
    "model.ffn_dropout=0.1",
    "batch.target_tokens=400",
    "batch.num_microbatches=4",
    "batch.max_pieces=60",
    "evaluate.train_pairs=50",
    "evaluate.max_decoded=20",
    "optim.warmup_steps=10",
    "train.log_every=1",
]


def run_dragoman(*arguments: str | Path, check: bool = True, **options) -> subprocess.CompletedProcess[str]:
    """The command as a user types it, in a process of its own."""
    command = [sys.executable, "-m", "dragoman.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, **options)
    if check and done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def changes(*settings: str) -> list[str]:
    return [part for setting in (*TINY_RUN, *settings) for part in ("--set", setting)]


@pytest.fixture(scope="session")
def phrasebook_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 embedded sentences, prepared once per test process."""
    from dragoman.data.phrasebook.generate import phrasebook

    folder = tmp_path_factory.mktemp("phrasebook")
    book = phrasebook(num_train=2_000, num_dev=40, num_test=40)
    for split in ("train", "dev", "test"):
        sentences = getattr(book, split)
        (folder / f"{split}.en").write_text("".join(f"{s.source}\n" for s in sentences), encoding="utf-8")
        (folder / f"{split}.de").write_text("".join(f"{s.target}\n" for s in sentences), encoding="utf-8")
    files = [
        part
        for split, prefix in (("train", ""), ("dev", "dev-"), ("test", "test-"))
        for part in (f"--{prefix}source", folder / f"{split}.en", f"--{prefix}target", folder / f"{split}.de")
    ]
    run_dragoman("prepare", "phrasebook", "--languages", "en-de", *files, "--out", folder / "data", *changes())
    return folder / "data"
