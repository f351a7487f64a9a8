import dataclasses

import pytest
from report_network_samples import STEP, write_network_run

from dragoman.diagnose.facts import gather_facts
from dragoman.report.tables_machines import (
    host_table,
    hosts_without_samples,
    prediction_caption,
    prediction_table,
)
from dragoman.run.reader import read_run


@pytest.fixture(scope="module")
def facts(network_run):
    return gather_facts(network_run)


def rows_of(table):
    return {row[0]: row[1:] for row in table.rows}


def test_a_host_says_which_card_carried_the_exchange(facts):
    rows = rows_of(host_table(facts))
    assert rows["a"][:4] == ("2 × Tesla V100-SXM2-16GB", "2", "eth0", "1 Gb/s")
    assert rows["b"][4].endswith("MB/s")
    assert rows["b"][-1] == "99 %"
    assert hosts_without_samples(facts) == []


def test_a_host_whose_samples_are_lost_stays_in_the_table(tmp_path):
    facts = gather_facts(read_run(write_network_run(tmp_path / "run", 20, sampled_hosts="a").path))
    assert rows_of(host_table(facts))["b"][-4:] == ("no samples",) * 4
    assert hosts_without_samples(facts) == ["b"]


def test_prediction_against_reality(facts):
    rows = rows_of(prediction_table(facts))
    assert rows["Step time"] == ("31 s", "31 s", f"{STEP / 31.21:.2f}")
    assert rows["Bytes out of a host in a step"] == ("365 MB", "365 MB", "1.00")
    assert rows["Computing in a step"][2] == "1.02"
    assert rows["Run time, 60 steps"][2] == "1.00", "scaled to the steps that were done, start and push left out"
    assert rows["Cost of the machines"][2] == "1.01"
    caption = prediction_caption(facts.run.prediction, facts.num_steps)
    assert "made for 2,000 steps and is scaled to the 60 that were done" in caption


def test_what_was_not_recorded_is_said_in_the_table(facts):
    run = dataclasses.replace(facts.run, timings=())
    rows = rows_of(prediction_table(gather_facts(run)))
    assert rows["Computing in a step"] == ("0.300 s", "not recorded", "–")
    assert prediction_table(gather_facts(dataclasses.replace(run, prediction=None))) is None
