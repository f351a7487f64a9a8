from pathlib import Path

import pytest

from small_runs import train_here


@pytest.fixture(scope="session")
def trained_run(phrasebook_data, tmp_path_factory) -> Path:
    """A finished run of 30 steps with evaluations at 10, 20 and 30; read only."""
    run = tmp_path_factory.mktemp("runs") / "trained"
    settings = ("train.max_steps=30", "evaluate.every_steps=10", "checkpoint.every_steps=5", "checkpoint.keep_last=3")
    assert train_here(phrasebook_data, run, *settings) == 0
    return run
