import json
import math
import subprocess
import sys

import pytest
from run_samples import a_manifest, a_step

from dragoman.run.records import (
    EvalSentence,
    Event,
    StepRecord,
    from_line,
    manifest_from_dict,
    manifest_to_json,
    to_line,
)


def test_a_record_survives_the_file():
    for record in (a_step(3), Event(1, 2.0, "best", 3, {"by": "loss", "value": 1.5})):
        assert from_line(type(record), to_line(record).encode()) == record


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_survives(value):
    read = from_line(StepRecord, to_line(a_step(1, loss=value)).encode())
    assert read is not None
    assert read.loss == value or (math.isnan(value) and math.isnan(read.loss))


def test_text_keeps_to_one_line_whatever_it_holds():
    sentence = EvalSentence(0, "a\nb\u2028c\x00 <script>", "Straße 🚆", None, 1.0, 3)
    line = to_line(sentence)
    assert line.count("\n") == 1
    assert from_line(EvalSentence, line.encode()) == sentence


@pytest.mark.parametrize(
    "line",
    [
        b'{"attempt": 1, "ti',
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"step": 3}',
        to_line(Event(1, 1.0, "best", 1)).encode(),
    ],
)
def test_a_line_of_another_shape_is_none(line):
    assert from_line(StepRecord, line) is None


def test_keys_and_event_kinds_of_a_newer_version_are_passed_over():
    values = json.loads(to_line(a_step(3)))
    assert from_line(StepRecord, json.dumps({**values, "novelty": [1]}).encode()) == a_step(3)
    assert from_line(Event, b'{"attempt": 1, "time": 1.0, "kind": "eclipse", "step": 1, "detail": {}}') is not None


def test_the_manifest_survives_and_shows_its_schema_first():
    text = manifest_to_json(a_manifest())
    assert text.splitlines()[1].strip() == '"schema": 1,'
    assert manifest_from_dict(json.loads(text)) == a_manifest()
    assert manifest_from_dict({**json.loads(text), "novelty": 1}) == a_manifest()


def test_a_manifest_that_lacks_a_key_says_which():
    values = json.loads(manifest_to_json(a_manifest()))
    del values["data"]["languages"]
    with pytest.raises(ValueError, match=r"data\.languages"):
        manifest_from_dict(values)


def test_no_torch():
    modules = "dragoman.run.writer, dragoman.run.figures, dragoman.run.tensorboard"
    code = f"import sys, {modules}; print('torch' in sys.modules, 'tensorboard' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"
