"""The link as ranks measure it; what a real slow link gives is tested on emulated hosts."""

import json
from pathlib import Path

import pytest

from dragoman.dist.elastic import run_workers
from dragoman.dist.probe import SUM_BYTES, _pair_speeds, _rounds
from dragoman.run.promise import PairSpeed
from small_runs import kept_signals


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> list[dict]:
    folder = tmp_path_factory.mktemp("hosts")
    program = Path(__file__).with_name("link_program.py")
    with kept_signals():
        assert run_workers([str(program), str(folder)], 2) == {}
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]


def test_all_ranks_hold_the_same_profile_within_the_budget(seen):
    assert seen[0]["link"] == seen[1]["link"]
    assert seen[0]["seconds"] < 8
    assert any("alone" in text for text in seen[0]["said"])


def test_every_pair_and_growing_sums_are_measured(seen):
    link = seen[0]["link"]
    assert {(pair["source"], pair["target"]) for pair in link["pairs"]} == {("a", "b"), ("b", "a")}
    assert min(pair["alone_bytes_per_second"] for pair in link["pairs"]) == link["alone_bytes_per_second"]
    assert link["bytes_per_second"] == min(pair["both_bytes_per_second"] for pair in link["pairs"]) > 1e7
    assert 0 < link["latency_seconds"] < 0.2
    sizes = [point["num_bytes"] for point in link["sums"]]
    assert sizes == list(SUM_BYTES[: len(sizes)]) and len(sizes) >= 3
    assert link["sums"][-1]["seconds"] > link["sums"][0]["seconds"]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_pair_has_a_round_and_no_host_two_partners(size):
    rounds = _rounds(size)
    pairs = [pair for each in rounds for pair in each]
    assert sorted(pairs) == [(a, b) for a in range(size) for b in range(a + 1, size)]
    for each in rounds:
        hosts = [host for pair in each for host in pair]
        assert len(hosts) == len(set(hosts))


def test_what_a_receiver_counted_is_named_by_its_hosts():
    found = [[(1, 10.0, 5.0)], [(0, 20.0, 6.0)]]
    assert _pair_speeds(["x", "y"], found) == (PairSpeed("y", "x", 10.0, 5.0), PairSpeed("x", "y", 20.0, 6.0))
