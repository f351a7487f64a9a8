import json
import math

import pytest
from run_samples import a_manifest, a_step, an_eval

from dragoman.errors import DragomanError
from dragoman.run import figures
from dragoman.run.reader import read_run
from dragoman.run.records import Event, manifest_to_json, to_line


def put(path, *records):
    path.write_text("".join(to_line(record) for record in records))


def test_a_run_that_just_began_is_all_empty(folder):
    run = read_run(folder.path)
    assert run.manifest == a_manifest()
    assert (run.steps, run.timings, run.evals, run.events, run.checkpoints, run.lost_steps) == ((),) * 6
    assert run.read_eval_sentences(1, "dev") == []
    assert figures.mean_step_seconds(run) is None
    assert figures.duration_seconds(run) == 0


def test_reading_changes_nothing(folder):
    put(folder.steps_path, a_step(1))
    folder.steps_path.write_bytes(folder.steps_path.read_bytes() + b'{"torn')
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
    read_run(folder.path)
    assert {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")} == before


def test_what_a_later_attempt_did_again_is_lost_work(folder):
    first = [a_step(step) for step in range(1, 11)]
    second = [a_step(step, attempt=2) for step in range(6, 9)]
    put(folder.steps_path, *first, *second)
    run = read_run(folder.path)
    assert [(step.step, step.attempt) for step in run.steps] == [
        (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 2), (7, 2), (8, 2),
    ]  # fmt: skip
    assert [step.step for step in run.lost_steps] == [6, 7, 8, 9, 10], "9 and 10 grew from weights that are gone"


def test_what_a_run_did_again_after_a_rollback_is_lost_work(folder):
    put(folder.steps_path, *[a_step(step, loss=9.0) for step in range(1, 11)], *[a_step(step) for step in range(6, 9)])
    run = read_run(folder.path)
    assert [step.step for step in run.steps] == list(range(1, 9))
    assert [step.loss == 9.0 for step in run.steps] == [True] * 5 + [False] * 3
    assert [step.step for step in run.lost_steps] == [6, 7, 8, 9, 10]
    assert figures.attempt_spans(run)[0].num_lost_steps == 5


@pytest.mark.parametrize(("kind", "at", "kept"), [("resumed", 4, [1, 2, 3, 4]), ("started", 0, [])])
def test_an_attempt_that_died_before_its_first_step_still_cuts(folder, kind, at, kept):
    put(folder.steps_path, *[a_step(step) for step in range(1, 11)])
    put(folder.events_path, Event(1, 1000.0, "started", 0), Event(2, 2000.0, kind, at))
    assert [step.step for step in read_run(folder.path).steps] == kept


def test_an_evaluation_at_the_point_of_resuming_stays(folder):
    put(folder.steps_path, a_step(4), a_step(5, attempt=2))
    put(folder.evals_path, an_eval(4, dev_set="dev"), an_eval(4, dev_set="news"), an_eval(8))
    assert [(record.step, record.dev_set) for record in read_run(folder.path).evals] == [
        (4, "dev"),
        (4, "news"),
    ]


def test_torn_and_foreign_lines_are_counted_by_file(folder):
    put(folder.steps_path, a_step(1))
    folder.steps_path.write_bytes(b"\x00\xff\n" + folder.steps_path.read_bytes() + b'{"attempt": 1')
    run = read_run(folder.path)
    assert run.steps == (a_step(1),)
    assert run.num_bad_lines == {"steps.jsonl": 2}


def test_another_schema_is_refused_in_one_line(folder):
    values = json.loads(manifest_to_json(a_manifest()))
    folder.manifest_path.write_text(json.dumps({**values, "schema": 2}))
    with pytest.raises(DragomanError, match="schema 2; this version of Dragoman reads schema 1"):
        read_run(folder.path)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}', "\xff"])
def test_a_damaged_manifest_is_a_user_error(folder, text):
    folder.manifest_path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DragomanError, match=r"manifest\.json"):
        read_run(folder.path)


def test_checkpoints_as_they_lie_on_disk(folder):
    for step in (10, 20):
        path = folder.step_checkpoint(step)
        path.mkdir()
        (path / "weights.safetensors").write_bytes(b"x" * step)
        (path / "state.json").write_bytes(b"{}")
    (folder.checkpoints_path / ".step-00000030.tmp").mkdir()
    folder.average_checkpoint.mkdir()
    folder.set_pointer("best-loss", 10)
    folder.set_pointer("last", 20)
    found = read_run(folder.path).checkpoints
    assert [(item.name, item.step, item.pointers, item.num_bytes) for item in found] == [
        ("step-00000010", 10, ("best-loss",), 12),
        ("step-00000020", 20, ("last",), 22),
        ("average", None, (), 0),
    ]
    assert [file.name for file in found[0].files] == ["state.json", "weights.safetensors"]


def test_duration_leaves_out_the_gap_between_attempts(folder):
    put(folder.steps_path, a_step(1, time=1010.0), a_step(2, attempt=2, time=5020.0))
    put(folder.events_path, Event(2, 5000.0, "resumed", 1), Event(2, 5030.0, "finished", 2))
    run = read_run(folder.path)
    assert figures.duration_seconds(run) == 10.0 + 30.0
    assert [span.ending for span in figures.attempt_spans(run)] == ["cut off", "finished"]


def test_rates_are_of_the_kept_steps(folder):
    put(folder.steps_path, a_step(1), a_step(2), a_step(2, attempt=2))
    run = read_run(folder.path)
    assert figures.mean_step_seconds(run) == figures.median_step_seconds(run) == 0.5
    assert figures.target_tokens_per_second(run) == 200.0
    assert figures.attempt_spans(run)[0].num_lost_steps == 1


def test_the_best_is_never_nan():
    evals = [
        an_eval(1, loss=math.nan, bleu=math.nan),
        an_eval(2, loss=2.0, bleu=30.0),
        an_eval(3, loss=2.5, bleu=31.0),
    ]
    assert figures.best_by_loss(evals) is evals[1]
    assert figures.best_by_bleu(evals) is evals[2]
    assert figures.best_by_loss(evals[:1]) is None
    assert figures.best_by_bleu([an_eval(1)]) is None
