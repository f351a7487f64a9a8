"""What a campaign plans from its seed, and how it goes on."""

import json
from itertools import islice, pairwise

import pytest

from dragoman.run.folder import RunFolder
from fault_kinds import KINDS
from fault_plan import plan_runs
from fault_records import Entry, Records, longest_pause, num_missing
from faults import go_on

EVERYTHING = (list(KINDS), [2, 3])


def test_more_faults_are_the_same_runs_and_some_more():
    few, many = (list(plan_runs(7, *EVERYTHING, number)) for number in (40, 80))
    assert few[:-1] == many[: len(few) - 1]
    assert sum(len(plan.faults) for plan in many) == 80
    assert list(plan_runs(8, *EVERYTHING, 40)) != few


def test_every_kind_comes_and_somebody_is_left_to_train():
    plans = list(plan_runs(7, *EVERYTHING, 200))
    assert {fault.kind for plan in plans for fault in plan.faults} == set(KINDS)
    for plan in plans:
        assert sum(KINDS[fault.kind].loses_host for fault in plan.faults) < plan.settings.num_hosts
        assert [fault for group in plan.groups() for fault in group] == list(plan.faults)
        assert not plan.groups()[0][0].is_hasty


def test_a_campaign_goes_on_with_what_is_missing(tmp_path):
    plans = list(plan_runs(7, *EVERYTHING, 12))
    path = tmp_path / "out.jsonl"
    lines = [
        {"campaign": 1},
        {"run": 0, "line": "fault"},
        {"run": 0, "line": "run", "num_faults": len(plans[0].faults)},
        {"run": 1, "line": "fault"},
        {"run": 2, "line": "run", "num_faults": len(plans[2].faults) + 1},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert go_on(path, {"campaign": 1}, plans) == lines[1:3]
    assert [json.loads(line) for line in path.read_text().splitlines()] == lines[:3]
    with pytest.raises(SystemExit, match="another campaign"):
        go_on(path, {"campaign": 2}, plans)


def test_records_are_read_as_they_grow_and_a_clock_that_jumped_is_seen_through(tmp_path):
    folder, records = RunFolder(tmp_path), Records()
    line = {"attempt": 1, "time": 5.0, "step": 3, "kind": "resumed", "detail": {}}
    folder.events_path.write_text(json.dumps(line) + "\n" + '{"torn')
    records.read("a", folder)
    records.read("a", folder)
    (start,) = records.starts_since(5.0)
    assert (start.attempt, start.step) == (("a", 1), 3)
    assert start.time > 1e9, "when it was read, not when its clock said"
    records.read("b", folder)
    assert [event.attempt for event in islice(records.events, 1, None)] == [("b", 1)]


def test_a_step_without_a_record_is_no_pause():
    steps = [Entry(("a", attempt), time, step, {}) for attempt, time, step in ((1, 0.0, 1), (1, 4.0, 5), (2, 6.5, 2))]
    assert longest_pause(steps[:2]) == (1.0, 4.0)
    assert longest_pause(steps) == (2.5, 6.5)
    assert [num_missing(*pair) for pair in pairwise(steps)] == [3, 0]
