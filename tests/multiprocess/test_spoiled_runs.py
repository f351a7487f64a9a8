"""Real ranks, one of which computes losses that are no numbers: all of them leave out, roll back and end alike."""

import json
import os
from pathlib import Path

import pytest
import torch

from dragoman.launch.local import start_workers
from dragoman.run.control import DIVERGED
from dragoman.run.reader import RunRecord, read_run
from small_runs import kept_signals, tiny_job

SETTINGS = (
    "checkpoint.every_steps=4",
    "evaluate.every_steps=100",
    "evaluate.decode=false",
    "evaluate.train_pairs=0",
    "train.max_steps=16",
)
DILOCO = ("sync.method=diloco", "sync.replica=rank", "sync.every_steps=2", "sync.delay_steps=1")


@pytest.fixture
def train(phrasebook_data, tmp_path, monkeypatch):
    def run(code: int, first: int, last: int, visits: int, *settings: str) -> tuple[RunRecord, list[torch.Tensor]]:
        """The run, and the weights with which each rank left it."""
        plan = {"first": first, "last": last, "visits": visits, "weights": str(tmp_path / "weights")}
        monkeypatch.setenv("SPOILED", json.dumps(plan))
        folders = [str(Path(__file__).parent), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
        with kept_signals():
            job = tiny_job(phrasebook_data, tmp_path / "run", *SETTINGS, *settings, workers=2)
            assert start_workers("spoiled_program", [job], 2) == code
        weights = [torch.load(tmp_path / f"weights.{rank}") for rank in range(2)]
        return read_run(tmp_path / "run"), weights

    return run


@pytest.mark.parametrize(("settings", "num_ranks"), [(("sync.method=int8",), 2), (DILOCO, 1)])
def test_one_rank_without_numbers_rolls_all_back_and_poisons_nobody(train, settings, num_ranks):
    run, weights = train(0, 7, 12, 1, *settings)
    left_out = run.events_of("left-out")
    assert [event.step for event in left_out[:5]] == [7, 8, 9, 10, 11]
    assert {(event.detail["rank"], event.detail["num_ranks"]) for event in left_out} == {(1, num_ranks)}
    assert [event.step for event in run.events_of("rolled-back")] == [4]
    assert [step.step for step in run.steps] == list(range(1, 17))
    assert {timing.rank for timing in run.timings} == {0, 1}
    assert weights[0].isfinite().all()
    assert weights[0].equal(weights[1])


def test_all_ranks_end_with_the_code_of_their_own(train):
    run, _ = train(DIVERGED, 7, 100, 9, "sync.method=dense")
    assert run.events_of("stopped")[-1].detail["reason"] == "diverged"
    # Saved as soon as it went back: a run that is killed now must not forget that it did.
    assert run.folder.pointed_step("last") == 5
    assert json.loads((run.folder.step_checkpoint(5) / "state.json").read_text())["rate_factor"] == 0.5
