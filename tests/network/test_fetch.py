"""Runs that cross a real link: brought home by fetch, broken off and gone on with, and mirrored."""

import json
import sys
import time

import pytest

from sample_run import files_of, write_checkpoint, write_sample_run

DRAGOMAN = [sys.executable, "-m", "dragoman.cli"]
MIRROR = (
    "import sys; from pathlib import Path; from dragoman.launch.copying import mirror\n"
    "print(mirror.check_mirror(sys.argv[2]))"
)


@pytest.fixture
def run(tmp_path):
    return write_sample_run(tmp_path / "runs" / "mine")


def test_a_run_comes_home_over_ssh(lab_hosts, run, tmp_path):
    hosts = lab_hosts(2, "100mbit")
    out = hosts.output_of("a", [*DRAGOMAN, "fetch", f"b:{run.path}", "--to", "home"])
    assert "everything is here, you can cancel a, b" in out
    assert files_of(tmp_path / "home") == files_of(run.path)
    assert hosts.processes_on("b") == {}


def test_a_fetch_that_was_killed_goes_on_where_it_was(lab_hosts, run, tmp_path):
    for step in (30, 40, 50):
        write_checkpoint(run, step, num_bytes=4_000_000)
    hosts = lab_hosts(2, "20mbit")
    fetch = [*DRAGOMAN, "fetch", f"b:{run.path}", "--to", "home", "--json"]
    process = hosts.start("a", fetch)
    first = tmp_path / "home" / "checkpoints" / "step-00000030" / "weights.safetensors"
    deadline = time.monotonic() + 30
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert not (tmp_path / "home" / "checkpoints" / "step-00000050").exists()
    outcome = json.loads(hosts.output_of("a", fetch))
    assert outcome["is_whole"] and 0 < outcome["num_copied"] < outcome["num_files"]
    assert files_of(tmp_path / "home") == files_of(run.path)


def test_a_mirror_behind_ssh(lab_hosts, run, tmp_path):
    hosts = lab_hosts(2, "100mbit")
    code = f"{MIRROR}\nprint(mirror.copy_changes(Path(sys.argv[1]), sys.argv[2]))"
    place = tmp_path / "copies" / "mine"
    copy = [sys.executable, "-c", code, run.path, f"b:{place}"]
    assert hosts.output_of("a", copy).splitlines()[0] == f"b:{place}"
    listing = ["sh", "-c", f"cd {place} && find . | sort && find . -type f | sort | xargs sha256sum"]
    there = hosts.output_of("b", listing)
    assert "./checkpoints/last\n" in there and "./control.json\n" in there
    assert not place.exists(), "it is on the disk of b, not on that of a"
    assert hosts.output_of("a", copy).splitlines()[1] == "0"
