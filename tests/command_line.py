"""The command line in a process of its own, and the settings of a run that takes seconds."""

import subprocess
import sys
from pathlib import Path

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
