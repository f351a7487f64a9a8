"""The host never waits for the GPU within a step: it only tells it what to do next."""

from pathlib import Path

import pytest
import torch

from dragoman.train import loop
from dragoman.train.meter import Meter
from small_runs import train_here

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
    # Torch says that it does not see every wait; a copy to the host, or `item`, it sees.
    pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype"),
]
MAY_WAIT = ("validation", "checkpoint")
NUM_STEPS = 30
SETTINGS = (f"train.max_steps={NUM_STEPS}", "model.d_model=64", "model.num_heads=2", "evaluate.every_steps=12")


class StrictMeter(Meter):
    """Whatever waits is an error, but for the first step, which prepares, and the last one, which ends the run."""

    num_steps = 0

    def begin(self, phase: str) -> None:
        is_strict = 1 <= self.num_steps < NUM_STEPS - 1 and phase not in MAY_WAIT
        torch.cuda.set_sync_debug_mode("error" if is_strict else "default")
        super().begin(phase)

    def end_step(self, set_time: bool = False) -> None:
        super().end_step(set_time)
        StrictMeter.num_steps += 1


@pytest.fixture
def train_strictly(phrasebook_data, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_DEVICE", "cuda")
    monkeypatch.setattr(loop, "Meter", StrictMeter)
    monkeypatch.setattr(StrictMeter, "num_steps", 0)
    yield lambda *settings: train_here(phrasebook_data, tmp_path / "run", *SETTINGS, *settings)
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("method", ["adamw", "muon"])
def test_no_step_waits_for_the_gpu(train_strictly, method):
    assert train_strictly(f"optim.method={method}") == 0
    assert StrictMeter.num_steps == NUM_STEPS


def test_a_wait_would_be_seen(train_strictly, monkeypatch, capfd):
    monkeypatch.setattr(loop, "landing", lambda tensor: tensor.cpu())
    assert train_strictly() == 1
    assert "called a synchronizing CUDA operation" in capfd.readouterr().err
