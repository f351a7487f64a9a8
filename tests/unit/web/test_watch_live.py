"""A run that goes on, read line by line."""

import math
import shutil

import pytest

from dragoman.run.folder import RunFolder
from dragoman.run.writer import append_lines
from dragoman.web.watch.figures import charts, findings, step_line, tiles
from dragoman.web.watch.live import LiveRun
from dragoman.web.watch.pace import done_share, left_seconds, recent_parts, tokens_per_second
from growing_run import LINK_BYTES_PER_SECOND, MAX_STEPS, GrowingRun


@pytest.fixture
def run(tmp_path):
    return GrowingRun(tmp_path / "run", start=1000.0)


@pytest.fixture
def live(run):
    return LiveRun(run.folder)


def tile(live, key, kind="running"):
    return next(item for item in tiles(live, kind) if item.key == key)


def test_a_run_grows(run, live):
    assert live.refresh() and live.last is None and step_line(live) == f"No step yet of {MAX_STEPS:,}"
    run.steps(10)
    assert live.refresh()
    assert live.last.step == 10 and live.recent_step_seconds == 0.5
    assert tokens_per_second(live) == 2000
    assert not live.refresh(), "nothing is new"
    run.steps(1, loss=1.25)
    assert live.refresh() and live.last.loss == 1.25
    assert [point[0] for point in live.loss.points()] == list(range(1, 12))


def test_torn_and_foreign_lines_are_passed_over(run, live):
    run.steps(2)
    append_lines(run.folder.steps_path, ['{"attempt": 1, "ti', "\n", "null\n", "[]\n"])
    run.steps(1)
    live.refresh()
    assert live.last.step == 3


def test_what_a_later_attempt_does_again_leaves_the_curves(run, live):
    run.steps(60, loss=9.0)
    run.evaluate(3.0)
    live.refresh()
    run.resume(40)
    run.steps(5, loss=1.0)
    live.refresh()
    assert live.last.step == 45 and live.attempt == 2
    assert [step.step for step in live.recent] == [*range(11, 41), *range(41, 46)], "of the last 50 seen, 20 are lost"
    assert [point[2] for point in live.loss.points()][-6:] == [9.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert live.evals == [], "it was of a step that is done again"


def test_what_a_run_does_again_after_a_rollback_leaves_the_curves(run, live):
    run.steps(60, loss=9.0)
    live.refresh()
    run.step = 40
    run.event("rolled-back", text="back to the checkpoint of step 40")
    run.steps(5, loss=1.0)
    live.refresh()
    assert live.last.step == 45 and live.attempt == 1
    assert [point[2] for point in live.loss.points()][-6:] == [9.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert findings(live) == [("rolled-back", "back to the checkpoint of step 40", 40)]


def test_another_run_in_the_same_folder_begins_anew(run, live):
    run.steps(30)
    live.refresh()
    before, path = live.num_news, run.folder.path
    shutil.rmtree(path)
    live.refresh()
    assert live.manifest is None and live.last is None and live.was_there
    GrowingRun(path, start=5000.0).steps(3)
    live.refresh()
    assert live.last.step == 3 and len(live.loss.points()) == 3 and len(live.events) == 1
    assert live.num_news > before, "a page that has drawn the other run draws this one"


def test_a_damaged_manifest_is_named_and_not_raised(run, live):
    run.folder.manifest_path.write_text("{")
    live.refresh()
    assert live.manifest is None and "cannot read" in live.problem


def test_time_left_counts_what_lies_beside_the_steps(run, live):
    run.steps(10)
    run.now += 5.0  # as long again was spent on evaluating
    run.steps(10)
    live.refresh()
    # 20 steps of 0.5 s took 15 s: 1.5 times their own time.
    assert left_seconds(live) == pytest.approx((MAX_STEPS - 20) * 0.5 * 1.5)
    assert done_share(live) == 0.02


def test_numbers_come_with_units_and_without_guesses(run, live):
    live.refresh()
    assert {item.value for item in tiles(live, "starting")} == {"–"}
    run.steps(100)
    run.samples(6, sent_bytes=6_000_000)
    run.evaluate(2.5, bleu=11.04)
    live.refresh()
    assert tile(live, "step-time").value == "0.5 s/step" and "2 steps/s" in tile(live, "step-time").detail
    assert tile(live, "link").value == "6 MB/s"
    assert tile(live, "link").detail == "48 Mb/s out of a, 50 % of the measured 12 MB/s"
    assert tile(live, "dev").value == "2.500" and "BLEU 11.0" in tile(live, "dev").detail
    assert tile(live, "left").value == "7 min 30 s"
    assert tile(live, "left", "finished").label == "Took"
    run.steps(1, loss=math.nan)
    live.refresh()
    assert tile(live, "loss").value == "not a number"


def test_curves_of_several_hosts(run, live):
    run.steps(3)
    run.samples(4)
    live.refresh()
    drawn = {chart.key: chart for chart in charts(live)}
    assert list(drawn) == ["live-loss", "live-step", "live-link"]
    link = drawn["live-link"]
    assert [series.name for series in link.series] == ["a", "b"]
    assert link.mark == LINK_BYTES_PER_SECOND and "96 Mb/s" in link.mark_name
    assert {point[2] for point in link.series[0].points} == {9_000_000}, "the exchange's card alone, not lo"


def test_findings_newest_first_each_once(run, live):
    for step, code in ((20, "network-bound"), (40, "plateau"), (50, "network-bound")):
        run.event("finding", step=step, code=code, text=f"{code} at {step}")
    live.refresh()
    assert [(code, step) for code, _, step in findings(live)] == [("network-bound", 50), ("plateau", 40)]


def test_where_the_recent_steps_went(run, live):
    run.steps(10)
    live.refresh()
    assert dict(recent_parts(live)) == pytest.approx(
        {"forward": 0.2, "backward": 0.3, "exchange": 0.45, "optimizer": 0.05}
    )


def test_a_folder_that_is_not_there_is_empty(tmp_path):
    live = LiveRun(RunFolder(tmp_path / "none"))
    assert not live.refresh()
    assert live.manifest is None and not live.was_there and charts(live)[0].series[0].points == []
