import dataclasses
import json
import math
import random

import pytest
from report_samples import sample_step, write_sample_run

from dragoman.report.diagnosis import CODES, as_worksheet, diagnose
from dragoman.report.tables import provenance
from dragoman.report.values import values_of, write_values
from dragoman.run.reader import read_run
from dragoman.run.records import to_line


def strict(text):
    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_json_is_strict_and_has_the_figures(tmp_path):
    folder = write_sample_run(tmp_path / "run", 20, 10)
    nan = dataclasses.replace(sample_step(21, 1, 99.0, random.Random(1)), loss=math.nan)
    with folder.steps_path.open("a") as file:
        file.write(to_line(nan))
    with folder.evals_path.open("a") as file:
        file.write(to_line(dataclasses.replace(read_run(folder.path).evals[-1], step=21, loss=math.nan)))
    path = tmp_path / "report.json"
    write_values(diagnose(read_run(folder.path)), path)
    values = strict(path.read_text())
    assert values["summary"]["num_steps"] == 21
    assert values["summary"]["num_nan_steps"] == 1
    assert values["summary"]["last_eval"]["loss"] is None
    assert values["summary"]["best_bleu"]["step"] == 20
    assert values["manifest"]["num_parameters"] == 1_204_224


def test_json_has_everything_that_is_said(diagnosed_network):
    values = strict(json.dumps(values_of(diagnosed_network), allow_nan=False))
    assert [answer["number"] for answer in values["answers"]] == list(range(1, 12))
    assert values["answers"][4]["verdict"] == "Yes."
    assert "network-bound" in [finding["code"] for finding in values["findings"]]
    assert values["headline"]["limit"].startswith("The network limited the run")
    assert "2 hosts were" in values["headline"]["scaling"]
    assert values["prediction"]["sent_bytes"] == 365_000_000
    assert {"link", "traffic", "dev-loss"} <= set(values["figures"])
    assert "layer" in values["figures"]["link"]["vega_lite"]


def test_how_a_step_was_cut_is_among_the_facts(diagnosed_network):
    run, summary = diagnosed_network.facts.run, diagnosed_network.summary
    assert "microbatches a step" not in dict(provenance(run, summary)), "of a run from before it was recorded"
    settled = dataclasses.replace(run, manifest=dataclasses.replace(run.manifest, num_microbatches=4))
    assert dict(provenance(settled, summary))["microbatches a step"] == "4"


def test_a_worksheet_gives_no_verdict_away(diagnosed_network):
    values = values_of(as_worksheet(diagnosed_network))
    assert {answer["verdict"] for answer in values["answers"]} == {""}
    assert {answer["sentences"] for answer in values["answers"]} == {""}
    assert values["answers"][4]["numbers"]
    assert (values["findings"], values["headline"]) == ([], None)


@pytest.mark.parametrize("code", ["network-bound", "straggler", "card-slower-than-it-says"])
def test_codes_are_those_of_the_findings(code, diagnosed_network):
    assert code in CODES
    assert all(finding.code in CODES for finding in diagnosed_network.findings)
