"""Runs that look like a fault at first sight and have none, or another one: what each condition of a rule is for."""

import random
from dataclasses import replace

import numpy as np

import diagnose_samples as samples
from diagnose_samples import Shape
from dragoman.diagnose.facts import gather_facts
from dragoman.diagnose.headline import headline
from dragoman.diagnose.rules import find
from dragoman.diagnose.series import timing_grid


def codes_of(run) -> set[str]:
    return {finding.code for finding in find(gather_facts(run))}


def test_a_host_that_is_late_every_other_step_is_no_straggler():
    uneven = {0: lambda step: 0.15, 1: lambda step: 0.3 if step % 20 < 11 else 0.05}
    shape = replace(samples.STRAGGLER, compute=lambda step, rank: uneven[rank](step))
    assert "straggler" not in codes_of(samples.build(shape))


def test_a_host_that_is_late_by_its_clock_alone_is_no_straggler():
    run = samples.build(samples.HEALTHY_TWO)
    wrong = {"offsets": {"a": 0.0, "b": samples.HEALTHY_TWO.clock_ahead - 0.2}}
    events = tuple(replace(event, detail=wrong) if event.kind == "clocks" else event for event in run.events)
    assert "straggler" not in codes_of(replace(run, events=events))


def test_one_long_hiccup_of_the_link_is_not_a_network_that_limits():
    slow = Shape(num_hosts=2, capacity=12e6, alone=12e6, claimed_bits=100_000_000, num_steps=80, eval_every=20)
    hiccup = replace(slow, transfer=lambda step: 60.0 if step == 40 else 0.004)
    facts = gather_facts(samples.build(hiccup))
    assert facts.split is not None and facts.split.transfer_share > 0.5, "the mean alone would say so"
    assert "network-bound" not in {finding.code for finding in find(facts)}


def test_a_link_that_always_went_up_and_down_did_not_become_slower():
    def transfer(step: int) -> float:
        low, high = (0.0, 0.1) if step <= 150 else (0.03, 0.15)
        return random.Random(step).uniform(low, high)

    assert "link-slower" not in codes_of(samples.build(Shape(num_hosts=2, transfer=transfer)))


def test_the_network_is_named_first_where_data_is_waited_for_too():
    facts = gather_facts(samples.build(replace(samples.NETWORK_BOUND, data=lambda step, rank: 0.5)))
    assert "input-bound" in {finding.code for finding in find(facts)}
    assert headline(facts)[0].startswith("The network limited the run")


def test_lines_of_all_hosts_are_on_one_clock():
    run = samples.build(samples.HEALTHY_TWO)
    grid = timing_grid(run.timings, run.events)
    assert grid is not None
    assert np.abs(grid.time[:, 0] - grid.time[:, 1]).max() < 1e-3
