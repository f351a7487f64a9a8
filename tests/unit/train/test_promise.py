"""Before the first step: what is promised, when it is asked about, and when a run does not begin."""

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.data.shards import open_shards
from dragoman.errors import CheckFailed
from dragoman.run.consent import answer, open_question
from dragoman.run.folder import create_run_folder
from dragoman.run.promise import ComputeProfile, HostProfile, LinkProfile, Profile, write_promise
from dragoman.run.reader import read_run
from dragoman.run.records import Exchange
from dragoman.train.job import Job
from dragoman.train.promise import promise_run
from small_runs import tiny_recipe, train_here

SLOW = LinkProfile(1e6, 0.001, interfaces={"a": "eth0", "b": "eth0"}, card_bits_per_second={"a": 10**9, "b": 10**9})
COMPUTE = ComputeProfile("h", "cpu", "fp32", 60_000, 4, 0.001, 0.002, 0.001, 1, target_tokens=400)
TWO_HOSTS = Profile(0.0, (HostProfile("a"), HostProfile("b")), SLOW, COMPUTE)
DENSE = Exchange({"method": "dense", "precision": "fp32"}, 2)


@pytest.fixture
def job(phrasebook_data, tmp_path) -> Job:
    folder = create_run_folder(tmp_path / "run")
    return Job(tiny_recipe(), phrasebook_data, folder.path, 1, "dragoman train", price_per_hour=7.1)


def promise(job: Job, profile: Profile = TWO_HOSTS) -> list[str]:
    said: list[str] = []
    promise_run(job, open_shards(job.data), profile, DENSE, said.append)
    return said


def test_both_files_and_one_line_with_bytes_rate_time_money_and_waiting(job):
    (line,) = promise(job)
    assert "each way over eth0 at 8 Mb/s" in line
    assert "a step" in line
    assert "$" in line
    assert "% waiting" in line
    assert "the card says 1 Gb/s, check the provider's port speed" in line
    assert json.loads(job.folder.profile_path.read_text())["link"]["bytes_per_second"] == 1e6
    assert json.loads(job.folder.prediction_path.read_text())["line"] == line


def test_a_run_that_would_mostly_wait_does_not_begin_where_that_was_forbidden(job):
    with pytest.raises(CheckFailed, match=r"not begun: 9\d% of a step would be waiting, more than 50%"):
        promise(replace(job, most_waiting=0.5))
    assert job.folder.prediction_path.exists()  # what it would have been is kept
    promise(replace(job, most_waiting=0.999))


@pytest.mark.parametrize("is_yes", [True, False])
def test_a_person_at_a_terminal_decides(job, is_yes):
    def reply() -> None:
        while open_question(job.folder) is None:
            time.sleep(0.01)
        answer(job.folder, is_yes)

    person = threading.Thread(target=reply)
    person.start()
    if is_yes:
        promise(replace(job, asks=True))
    else:
        with pytest.raises(CheckFailed, match="not begun: the answer was no"):
            promise(replace(job, asks=True))
    person.join()


def test_nobody_is_asked_about_one_machine(job):
    one = Profile(0.0, TWO_HOSTS.hosts[:1], None, COMPUTE)
    assert promise(replace(job, asks=True), one)[0].startswith("one machine: ")


def test_a_run_measures_once_and_keeps_its_promise(phrasebook_data, tmp_path):
    run: Path = tmp_path / "run"
    train_here(phrasebook_data, run, "train.max_steps=3", "evaluate.decode=false")
    first = read_run(run)
    assert first.profile.compute.forward_seconds > 0
    assert first.profile.compute.peak_flops > 1e8
    assert first.prediction.step.total_seconds > 0
    assert first.prediction.num_steps == 3
    train_here(phrasebook_data, run, "train.max_steps=5", "evaluate.decode=false")
    second = read_run(run)
    assert second.profile == first.profile
    assert second.prediction.num_steps == 5


@pytest.mark.parametrize("what", ["hosts", "recipe"])
def test_what_was_measured_elsewhere_or_for_another_recipe_is_measured_anew(phrasebook_data, tmp_path, what):
    run: Path = tmp_path / "run"
    train_here(phrasebook_data, run, "train.max_steps=1", "evaluate.decode=false")
    mine = read_run(run)
    other = {
        "hosts": replace(mine.profile, hosts=(HostProfile("elsewhere"),)),
        "recipe": replace(mine.profile, compute=replace(mine.profile.compute, recipe_hash="other")),
    }[what]
    write_promise(mine.folder.profile_path, other)
    train_here(phrasebook_data, run, "train.max_steps=2", "evaluate.decode=false")
    fresh = read_run(run).profile
    assert fresh.hosts == mine.profile.hosts
    assert fresh.compute.recipe_hash == mine.profile.compute.recipe_hash
