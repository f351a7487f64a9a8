"""Settling how a step is cut, on threads as ranks and in real runs: who decides, and that it stays."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.config import Recipe
from dragoman.dist.world import World
from dragoman.errors import DragomanError
from dragoman.run.reader import read_manifest, read_run
from dragoman.run.writer import write_manifest
from dragoman.train import memory, microbatches
from dragoman.train.job import Job
from dragoman.train.microbatches import settle_microbatches
from sample_run import write_sample_run
from small_runs import tiny_recipe, train_here
from thread_worlds import run_ranks

AUTO = "batch.num_microbatches=auto"
QUICK = ("evaluate.decode=false", "evaluate.train_pairs=0")


def settle(data: Path, run: Path, num_ranks: int = 1, *settings: str) -> int:
    """What so many ranks settle on; the same on all of them."""
    job = Job(tiny_recipe(AUTO, *settings), data, run, 2, "")
    settled = run_ranks(num_ranks, lambda world: settle_microbatches(job, world))
    assert settled == [settled[0]] * num_ranks
    assert settled[0].recipe == job.recipe, "the recipe stays as it was given"
    assert settled[0].cut_recipe.batch.num_microbatches == settled[0].num_microbatches
    return settled[0].num_microbatches


@pytest.fixture
def known(tmp_path) -> Path:
    """A run of which a manifest remembers that its steps were cut in three."""
    folder = write_sample_run(tmp_path / "known")
    write_manifest(folder, replace(read_manifest(folder), num_microbatches=3, recipe=tiny_recipe(AUTO).model_dump()))
    return folder.path


def test_a_fresh_run_on_processors_has_eight_or_as_many_as_there_can_be(phrasebook_data, tmp_path):
    assert settle(phrasebook_data, tmp_path / "run") == 6
    assert settle(phrasebook_data, tmp_path / "run", 2) == 6
    assert settle(phrasebook_data, tmp_path / "run", 1, "batch.max_pieces=40") == 8


def test_the_recipe_decides_where_it_names_a_number(phrasebook_data, known):
    assert settle(phrasebook_data, known, 2, "batch.num_microbatches=5") == 5


def test_a_run_keeps_its_number(phrasebook_data, known):
    assert settle(phrasebook_data, known) == 3
    assert settle(phrasebook_data, known, 3) == 3


def test_a_run_goes_on_recomputing_as_it_began(phrasebook_data, known):
    folder = Job(tiny_recipe(), phrasebook_data, known, 2, "").folder
    write_manifest(folder, replace(read_manifest(folder), recomputes=True))
    for setting, expected in (("auto", True), ("false", False)):
        job = Job(tiny_recipe(AUTO, f"train.recompute={setting}"), phrasebook_data, known, 2, "")
        assert run_ranks(1, lambda world, job=job: settle_microbatches(job, world))[0].recomputes == expected


def test_more_ranks_than_that_cut_it_further(phrasebook_data, known):
    assert settle(phrasebook_data, known, 4) == 6
    tight = Job(tiny_recipe(AUTO, "batch.max_pieces=80"), phrasebook_data, known, 2, "")
    with pytest.raises(DragomanError, match="cut for 4 ranks makes microbatches of 66"):
        microbatches._known_number(tight.recipe, 4, read_manifest(tight.folder))


def test_a_run_from_before_keeps_what_its_recipe_named(phrasebook_data, known):
    folder = Job(tiny_recipe(), phrasebook_data, known, 2, "").folder
    old = replace(
        read_manifest(folder), num_microbatches=None, recipe=tiny_recipe("batch.num_microbatches=2").model_dump()
    )
    write_manifest(folder, old)
    assert settle(phrasebook_data, known) == 2
    write_manifest(folder, replace(old, recipe={}))
    assert settle(phrasebook_data, known) == 6


def test_the_poorest_gpu_decides_for_all(phrasebook_data, tmp_path, monkeypatch):
    asked = []

    def choose(recipe: Recipe, vocab_size: int, num_ranks: int, free_bytes: int, value_bytes: int) -> int:
        asked.append((num_ranks, free_bytes, value_bytes))
        return 4

    words = [{"gpu": name, "free": free, "taken": 5} for name, free in (("a", 900), ("b", 300))]
    this = threading.local()

    def free_bytes(world: World) -> int | None:
        this.rank = world.rank
        return memory.poorest_share(world.gather(words[world.rank]))

    monkeypatch.setattr(microbatches, "value_bytes_of", lambda *_: (2, 4)[this.rank])
    monkeypatch.setattr(microbatches, "choose_number", choose)
    monkeypatch.setattr(microbatches, "free_gpu_bytes", free_bytes)
    assert settle(phrasebook_data, tmp_path / "run", 2) == 4
    assert asked == [(2, 305, 4)], "chosen once, by rank 0"


def test_a_run_writes_it_down_and_goes_on_with_it(phrasebook_data, tmp_path, capsys):
    run = tmp_path / "run"
    assert train_here(phrasebook_data, run, "train.max_steps=2", AUTO, *QUICK) == 0
    assert "a step is 6 microbatches of 66 target tokens" in capsys.readouterr().err
    first = read_run(run)
    assert first.manifest.num_microbatches == first.profile.compute.num_microbatches == 6
    assert first.prediction.num_microbatches == 6
    assert first.manifest.recipe["batch"]["num_microbatches"] == "auto"
    assert train_here(phrasebook_data, run, "train.max_steps=4", AUTO, *QUICK) == 0
    second = read_run(run)
    assert second.manifest.num_microbatches == 6
    assert second.profile == first.profile, "what was measured is still true"
    assert [step.step for step in second.steps] == [1, 2, 3, 4]


def test_a_run_that_ran_out_of_memory_goes_on_with_smaller_ones(phrasebook_data, tmp_path):
    """Another number is the same run: what is told to whoever ran out of memory must be possible."""
    run = tmp_path / "run"
    for steps, setting in ((2, "batch.num_microbatches=3"), (4, "batch.num_microbatches=6"), (5, AUTO)):
        assert train_here(phrasebook_data, run, f"train.max_steps={steps}", setting, *QUICK) == 0
    record = read_run(run)
    assert record.manifest.num_microbatches == 6
    assert record.profile.compute.num_microbatches == 6, "smaller ones are timed anew"
    assert [step.step for step in record.steps] == [1, 2, 3, 4, 5]


def test_auto_trains_as_its_number_does(phrasebook_data, tmp_path):
    losses = []
    for setting in (AUTO, "batch.num_microbatches=6"):
        run = tmp_path / setting[-4:]
        assert train_here(phrasebook_data, run, "train.max_steps=5", setting, *QUICK) == 0
        losses.append([step.loss for step in read_run(run).steps])
    assert losses[0] == losses[1]
