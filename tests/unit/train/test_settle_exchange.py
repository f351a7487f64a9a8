"""Settling how ranks stay together, on threads as hosts: who decides, and when a choice is made anew."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from dragoman.dist.probe import LinkSpeed
from dragoman.model.flat import FlatModel
from dragoman.run.reader import read_manifest
from dragoman.run.records import Exchange
from dragoman.run.writer import write_manifest
from dragoman.train import exchange
from dragoman.train.job import Job
from sample_run import write_sample_run
from small_runs import tiny_recipe
from thread_worlds import run_ranks

SLOW, FAST = LinkSpeed(1_000.0, 0.001), LinkSpeed(1e9, 0.0001)


@pytest.fixture
def run(tmp_path) -> Path:
    return write_sample_run(tmp_path / "run").path


def settle(monkeypatch: pytest.MonkeyPatch, run: Path, num_hosts: int, link: LinkSpeed, *settings: str) -> Exchange:
    """What as many hosts settle on, having computed for up to 0.1 s; the same on all of them."""
    monkeypatch.setattr(exchange, "measure_link", lambda _: link)
    job = Job(tiny_recipe(*settings), Path("data"), run, 2, "dragoman train")
    flat = FlatModel(nn.Linear(300, 300))
    settled = run_ranks(
        num_hosts,
        lambda world: exchange.settle_exchange(job, world, flat, lambda: (0.1 / (world.rank + 1), 0.05)),
    )
    assert settled == [settled[0]] * num_hosts
    return settled[0]


def remember(run: Path, chosen: Exchange) -> None:
    folder = Job(tiny_recipe(), Path("data"), run, 2, "").folder
    write_manifest(folder, replace(read_manifest(folder), exchange=chosen))


def test_the_recipe_decides_where_it_names_a_method(monkeypatch, run):
    settled = settle(monkeypatch, run, 2, SLOW, "sync.method=int8")
    assert settled.settings["method"] == "int8" and not settled.measured


def test_one_host_sums_exactly_without_measuring(monkeypatch, run):
    settled = settle(monkeypatch, run, 1, SLOW)
    assert settled.settings["method"] == "dense" and not settled.measured


def test_several_hosts_choose_by_the_slowest_rank_and_the_link(monkeypatch, run):
    assert settle(monkeypatch, run, 2, FAST).settings["method"] == "dense"
    settled = settle(monkeypatch, run, 2, SLOW)
    assert (settled.settings["method"], settled.settings["every_steps"]) == ("diloco", 64)
    assert settled.measured["compute_seconds"] == 0.1
    assert settled.measured["bytes_per_second"] == 1_000.0


def test_a_resumed_run_keeps_its_choice_unless_the_number_of_hosts_changed(monkeypatch, run):
    chosen = settle(monkeypatch, run, 2, SLOW)
    remember(run, chosen)
    assert settle(monkeypatch, run, 2, FAST) == chosen
    assert settle(monkeypatch, run, 3, FAST).settings["method"] == "dense"


def test_measuring_leaves_no_gradient_behind(monkeypatch):
    model = nn.Linear(4, 2)

    def pass_through(model: nn.Module, *_: object) -> tuple[float, float]:
        model(torch.ones(1, 4)).sum().backward()
        return 0.01, 0.02

    monkeypatch.setattr(exchange, "_forward_backward", pass_through)
    piece = type("Piece", (), {"labels": torch.zeros(3)})()
    step = type("Step", (), {"microbatches": [piece, piece]})()
    monkeypatch.setattr(exchange, "feed", lambda *_: iter([step]))
    seconds, overlap = exchange.compute_seconds(model, tiny_recipe(), None, None, None)  # type: ignore[arg-type]
    assert (seconds, overlap) == (0.06, 0.02)
    assert not model.weight.grad.any()
