"""The choice of an exchange from compute and link: exact where it fits, lossier only as far as needed."""

from dataclasses import replace

import pytest

from dragoman.plan.exchange import LADDER, MOST_WAITING, USABLE_SHARE, Facts, choose, explain, predict

BASE = Facts(
    num_parameters=60_900_000,
    num_hosts=2,
    num_ranks=2,
    compute_seconds=0.30,
    overlap_seconds=0.10,
    bytes_per_second=12e6,
    latency_seconds=0.0005,
)


@pytest.mark.parametrize(
    ("compute_seconds", "bytes_per_second", "expected"),
    [
        (0.30, 12e6, "diloco sign every 4"),
        (0.05, 12e6, "diloco sign every 16"),
        (0.30, 120e6, "diloco sign every 4"),
        (0.05, 120e6, "diloco sign every 4"),
        (0.30, 1.2e9, "diloco sign every 4"),
        (0.30, 2.4e9, "dense bf16"),
        (0.30, 5e9, "dense fp32"),
    ],
)
def test_the_least_lossy_that_keeps_up_is_taken(compute_seconds, bytes_per_second, expected):
    facts = replace(BASE, compute_seconds=compute_seconds, overlap_seconds=compute_seconds / 3)
    assert choose(replace(facts, bytes_per_second=bytes_per_second)).option.name == expected


def test_a_faster_link_never_gets_a_lossier_exchange():
    rungs = [LADDER.index(choose(replace(BASE, bytes_per_second=10.0**power)).option) for power in range(4, 12)]
    assert rungs == sorted(rungs, reverse=True)
    assert rungs[0] == len(LADDER) - 1
    assert rungs[-1] == 0


def test_where_nothing_keeps_up_the_least_waiting_is_taken_and_more_text_per_step_advised():
    facts = replace(BASE, bytes_per_second=100_000.0)
    choice = choose(facts)
    assert choice.option == LADDER[-1]
    assert choice.waiting_seconds > MOST_WAITING * facts.compute_seconds
    advice = explain(choice, facts)[-1]
    assert advice.startswith("even so the link is the limit: 5 times batch.target_tokens")
    assert "optim.learning_rate times 2.2" in advice and "batch.num_microbatches" in advice


def test_the_rung_that_costs_quality_says_how_to_do_without():
    facts = replace(BASE, bytes_per_second=1e6)
    choice = choose(facts)
    assert choice.option == LADDER[-1] and choice.waiting_seconds == 0.0
    advice = explain(choice, facts)[-1]
    assert advice.startswith("so rare an exchange costs quality: 2 times batch.target_tokens")
    larger = replace(facts, compute_seconds=2 * facts.compute_seconds)
    assert choose(larger).option == LADDER[-2]


def test_the_figures_of_a_slow_link():
    """60.9 M parameters over 12.5 MB/s need about 20 s between two ranks."""
    dense = predict(LADDER[0], replace(BASE, bytes_per_second=12.5e6 / USABLE_SHARE))
    assert dense.sent_bytes == 243_600_000
    assert dense.transfer_seconds == pytest.approx(19.5, abs=0.1)


@pytest.mark.parametrize(("option", "num_rounds"), [(LADDER[0], 2), (LADDER[-1], 1)])
def test_a_far_host_costs_its_latency_in_every_step(option, num_rounds):
    near, far = (predict(option, replace(BASE, latency_seconds=seconds)) for seconds in (0.0, 0.1))
    assert far.transfer_seconds - near.transfer_seconds == pytest.approx(num_rounds * 0.1)


def test_the_reasons_name_compute_link_bytes_and_choice():
    first, second = explain(choose(BASE), BASE)
    assert "computes 0.30 s" in first
    assert "12 MB/s" in first
    assert "244 MB" in first
    assert "diloco sign every 4" in second
