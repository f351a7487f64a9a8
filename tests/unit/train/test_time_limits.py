"""How long a run may train, and whether it has."""

import json

import pytest

from dragoman.config import TrainConfig
from dragoman.run.folder import create_run_folder
from dragoman.train.limits import TimeLimit, cost_seconds, reached_limit, time_limit
from dragoman.train.progress import Progress
from dragoman.train.stop import Stopper
from small_runs import kept_signals


def test_an_amount_buys_hours_of_all_hosts():
    assert cost_seconds(5.0, 2.5) == 2 * 3600
    assert cost_seconds(None, None) is None


@pytest.mark.parametrize(
    ("minutes", "bought", "limit"),
    [
        (0, None, None),
        (2, None, TimeLimit(120, "max_minutes")),
        (0, 90, TimeLimit(90, "max_cost")),
        (2, 90, TimeLimit(90, "max_cost")),
        (1, 90, TimeLimit(60, "max_minutes")),
    ],
)
def test_the_nearer_limit_holds(minutes, bought, limit):
    assert time_limit(minutes, bought) == limit


def test_a_run_knows_which_limit_ended_it():
    with kept_signals():
        for bought, reason in ((30, "max_cost"), (300, "max_minutes")):
            stopper = Stopper(TrainConfig(max_minutes=1), Progress(trained_seconds=61), bought)
            assert stopper.reason(*stopper.votes()) == reason


@pytest.mark.parametrize(("seconds", "is_reached"), [(60, True), (59.9, False)])
def test_a_run_that_has_had_its_time_is_told_so(tmp_path, seconds, is_reached):
    folder = create_run_folder(tmp_path / "run")
    limit = TimeLimit(60, "max_cost")
    assert reached_limit(folder, limit) is None
    last = folder.checkpoints_path / "last"
    last.mkdir(parents=True)
    (last / "state.json").write_text(json.dumps({"step": 1200, "trained_seconds": seconds}))
    said = reached_limit(folder, limit)
    assert (said is not None) == is_reached
    assert reached_limit(folder, None) is None
    if said:
        assert "the limit is reached (max_cost): 1 min 00 s of training to step 1,200" in said
        assert "a larger --max-cost goes on from there" in said
    (last / "state.json").write_text("torn")
    assert reached_limit(folder, limit) is None
