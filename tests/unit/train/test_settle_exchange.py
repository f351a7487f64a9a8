"""Settling how ranks stay together, on threads as hosts: who decides, and when a choice is made anew."""

from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.run.promise import ComputeProfile, HostProfile, LinkProfile, Profile
from dragoman.run.reader import read_manifest
from dragoman.run.records import Exchange
from dragoman.run.writer import write_manifest
from dragoman.train.exchange import settle_exchange
from dragoman.train.job import Job
from sample_run import write_sample_run
from small_runs import tiny_recipe
from thread_worlds import run_ranks

SLOW, FAST = LinkProfile(1_000.0, 0.001), LinkProfile(1e9, 0.0001)


@pytest.fixture
def run(tmp_path) -> Path:
    return write_sample_run(tmp_path / "run").path


def settle(run: Path, num_hosts: int, link: LinkProfile, *settings: str) -> Exchange:
    """What as many hosts settle on, computing 0.1 s in a step; the same on all of them."""
    job = Job(tiny_recipe("batch.num_microbatches=1", "batch.max_pieces=100", *settings), Path("data"), run, 2, "")
    compute = ComputeProfile("h", "cpu", "fp32", 90_300, 1, 0.05, 0.05, 0.001, 1)
    hosts = tuple(HostProfile(f"h{number}") for number in range(num_hosts))
    profile = Profile(0.0, hosts, link if num_hosts > 1 else None, compute)
    settled = run_ranks(num_hosts, lambda world: settle_exchange(job, world, profile))
    assert settled == [settled[0]] * num_hosts
    return settled[0]


def remember(run: Path, chosen: Exchange) -> None:
    folder = Job(tiny_recipe(), Path("data"), run, 2, "").folder
    write_manifest(folder, replace(read_manifest(folder), exchange=chosen))


def test_the_recipe_decides_where_it_names_a_method(run):
    settled = settle(run, 2, SLOW, "sync.method=int8")
    assert settled.settings["method"] == "int8" and not settled.measured


def test_one_host_sums_exactly_without_measuring(run):
    settled = settle(run, 1, SLOW)
    assert settled.settings["method"] == "dense" and not settled.measured


def test_several_hosts_choose_by_compute_and_link(run):
    assert settle(run, 2, FAST).settings["method"] == "dense"
    settled = settle(run, 2, SLOW)
    assert (settled.settings["method"], settled.settings["every_steps"]) == ("diloco", 64)
    assert settled.measured["compute_seconds"] == 0.1
    assert settled.measured["bytes_per_second"] == 1_000.0


def test_a_resumed_run_keeps_its_choice_unless_the_number_of_hosts_changed(run):
    chosen = settle(run, 2, SLOW)
    remember(run, chosen)
    assert settle(run, 2, FAST) == chosen
    assert settle(run, 3, FAST).settings["method"] == "dense"
